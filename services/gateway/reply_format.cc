#include "services/gateway/reply_format.h"

#include "services/gateway/json_text.h"

namespace tessera::gateway {

using google::protobuf::RepeatedPtrField;
using tokenizer::v1::TextLogprob;
using tokenizer::v1::TextToken;

namespace {

void AppendBytes(std::string& out, std::string_view bytes) {
  out += '[';
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (i != 0) out += ',';
    AppendJsonInteger(out, static_cast<unsigned char>(bytes[i]));
  }
  out += ']';
}

// "token":...,"logprob":...,"bytes":[...]
void AppendTokenFields(std::string& out, const std::string& token, float logprob) {
  out += "\"token\":";
  AppendJsonString(out, token);
  out += ",\"logprob\":";
  AppendJsonFloat(out, logprob);
  out += ",\"bytes\":";
  AppendBytes(out, token);
}

size_t CodePoints(std::string_view text) {
  size_t count = 0;
  for (const char c : text) count += (static_cast<unsigned char>(c) & 0xc0) != 0x80 ? 1 : 0;
  return count;
}

}  // namespace

void AppendHead(std::string& out, const ReplyHead& head, std::string_view object) {
  out += "{\"id\":";
  AppendJsonString(out, head.id);
  out += ",\"object\":";
  AppendJsonString(out, object);
  out += ",\"created\":";
  AppendJsonInteger(out, head.created_s);
  out += ",\"model\":";
  AppendJsonString(out, head.model);
}

void AppendUsage(std::string& out, const UsageCounts& usage) {
  out += "{\"prompt_tokens\":";
  AppendJsonInteger(out, usage.prompt_tokens);
  out += ",\"completion_tokens\":";
  AppendJsonInteger(out, usage.completion_tokens);
  out += ",\"total_tokens\":";
  AppendJsonInteger(out, int64_t{usage.prompt_tokens} + usage.completion_tokens);
  if (usage.detailed) {
    out += ",\"prompt_tokens_details\":{\"cached_tokens\":";
    AppendJsonInteger(out, usage.cached_prompt_tokens);
    out += "},\"completion_tokens_details\":{\"reasoning_tokens\":";
    AppendJsonInteger(out, usage.reasoning_tokens);
    out += '}';
  }
  out += '}';
}

void AppendReasoning(std::string& out, ReasoningField field, const std::string* reasoning) {
  const auto append = [&](std::string_view name) {
    out += name;
    if (reasoning != nullptr) {
      AppendJsonString(out, *reasoning);
    } else {
      out += "null";
    }
  };
  if (field != ReasoningField::kReasoningContent) append(",\"reasoning\":");
  if (field != ReasoningField::kReasoning) append(",\"reasoning_content\":");
}

void AppendStopReasonValue(std::string& out, const std::string* stop_string, const uint32_t* id) {
  if (stop_string != nullptr) {
    AppendJsonString(out, *stop_string);
  } else if (id != nullptr) {
    AppendJsonInteger(out, *id);
  } else {
    out += "null";
  }
}

void AppendChatLogprobs(std::string& out, const RepeatedPtrField<TextToken>& tokens) {
  out += "{\"content\":[";
  bool first = true;
  for (const TextToken& token : tokens) {
    if (!first) out += ',';
    first = false;
    out += '{';
    AppendTokenFields(out, token.token(), token.logprob());
    out += ",\"top_logprobs\":[";
    for (int i = 0; i < token.top_logprobs_size(); ++i) {
      out += i == 0 ? "{" : ",{";
      AppendTokenFields(out, token.top_logprobs(i).token(), token.top_logprobs(i).logprob());
      out += '}';
    }
    out += "]}";
  }
  out += "]}";
}

void AppendLegacyLogprobs(std::string& out, const RepeatedPtrField<TextToken>& tokens,
                          uint64_t& text_offset) {
  std::string texts, logprobs, tops, offsets;
  const char* comma = "";
  for (const TextToken& token : tokens) {
    for (std::string* const list : {&texts, &logprobs, &tops, &offsets}) *list += comma;
    comma = ",";
    AppendJsonString(texts, token.token());
    AppendJsonFloat(logprobs, token.logprob());
    AppendJsonInteger(offsets, static_cast<int64_t>(text_offset));
    text_offset += CodePoints(token.token());
    tops += '{';
    for (int i = 0; i < token.top_logprobs_size(); ++i) {
      if (i != 0) tops += ',';
      AppendJsonString(tops, token.top_logprobs(i).token());
      tops += ':';
      AppendJsonFloat(tops, token.top_logprobs(i).logprob());
    }
    tops += '}';
  }
  out += "{\"tokens\":[" + texts + "],\"token_logprobs\":[" + logprobs + "],\"top_logprobs\":[" +
         tops + "],\"text_offset\":[" + offsets + "]}";
}

std::string ErrorEvent(std::string_view body) {
  std::string event = "data: ";
  event += body;
  event += "\n\n";
  return event;
}

}  // namespace tessera::gateway
