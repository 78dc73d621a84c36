#include "services/gateway/completion_request.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "services/gateway/json_body.h"

namespace tessera::gateway {
namespace {

using nlohmann::ordered_json;
using tokenizer::v1::GenerateRequest;

// OpenAI's default, which vLLM keeps for this endpoint.
constexpr uint32_t kMaxTokensDefault = 16;

void ReadIds(JsonFields& fields, const std::string& name, const ordered_json& ids,
             GenerateRequest& request) {
  if (ids.size() > kPromptTokensMax) {
    fields.Fail(name, absl::StrCat("has ", ids.size(), " tokens; give at most ", kPromptTokensMax));
    return;
  }
  auto& out = *request.mutable_tokens()->mutable_ids();
  out.Reserve(static_cast<int>(ids.size()));
  for (size_t i = 0; i < ids.size(); ++i) {
    if (!ids[i].is_number_unsigned() || ids[i].get<uint64_t>() > UINT32_MAX) {
      fields.Fail(absl::StrCat(name, "[", i, "]"), "must be a token id, a whole number from 0");
      return;
    }
    out.Add(ids[i].get<uint32_t>());
  }
}

void ReadPrompt(JsonFields& fields, const std::string& name, const ordered_json& prompt,
                GenerateRequest& request) {
  if (prompt.is_string()) {
    request.set_text(prompt.get<std::string>());
    if (request.text().size() > kPromptBytesMax) {
      fields.Fail(name, absl::StrCat("is ", request.text().size(), " bytes long; the limit is ",
                                     kPromptBytesMax, "; shorten it"));
    }
  } else if (prompt.is_array() && !prompt.empty()) {
    ReadIds(fields, name, prompt, request);
  } else {
    fields.Fail(name, "must be a text or a list of token ids that is not empty");
  }
}

std::vector<GenerateRequest> ReadPrompts(JsonFields& fields, const GenerateRequest& common) {
  std::vector<GenerateRequest> prompts;
  const ordered_json* const value = fields.Find("prompt");
  if (value == nullptr) {
    fields.Fail("prompt", "is missing; give a text or token ids");
    return prompts;
  }
  const bool is_list = value->is_array() && !value->empty() &&
                       (value->front().is_string() || value->front().is_array());
  if (!is_list) {
    prompts.push_back(common);
    ReadPrompt(fields, "prompt", *value, prompts.back());
    return prompts;
  }
  if (value->size() > kCompletionPromptsMax) {
    fields.Fail("prompt", absl::StrCat("has ", value->size(), " prompts; give at most ",
                                       kCompletionPromptsMax));
    return prompts;
  }
  for (size_t i = 0; i < value->size(); ++i) {
    prompts.push_back(common);
    ReadPrompt(fields, absl::StrCat("prompt[", i, "]"), (*value)[i], prompts.back());
  }
  return prompts;
}

}  // namespace

absl::StatusOr<CompletionCall> ReadCompletionRequest(std::string_view body) {
  const absl::StatusOr<ordered_json> root = ParseJsonBody(body);
  if (!root.ok()) return root.status();
  CompletionCall call;
  GenerateRequest common;
  JsonFields fields(*root, "");
  common.set_model(fields.String("model").value_or(""));
  ReadSampling(fields, *common.mutable_sampling());
  if (!common.sampling().has_max_tokens()) {
    common.mutable_sampling()->set_max_tokens(kMaxTokensDefault);
  }
  if (const auto top = fields.Integer("logprobs", 0, 20)) {
    common.mutable_sampling()->set_logprobs(static_cast<uint32_t>(*top));
  }
  ReadStop(fields, *common.mutable_stop());
  if (const auto keep = fields.Bool("include_stop_str_in_output")) {
    common.set_include_stop_str_in_output(*keep);
  }
  if (const auto skip = fields.Bool("skip_special_tokens")) common.set_skip_special_tokens(*skip);
  if (const auto priority = fields.Integer("priority", INT32_MIN, INT32_MAX)) {
    common.set_priority(static_cast<int32_t>(*priority));
  }
  common.set_echo(fields.Bool("echo").value_or(false));
  if (common.echo() && common.sampling().has_logprobs()) {
    fields.Fail("echo", "cannot be had together with logprobs; leave one out");
  }
  if (const auto suffix = fields.String("suffix"); suffix.has_value() && !suffix->empty()) {
    fields.Fail("suffix", "is not supported; leave it out");
  }
  const uint32_t n = common.sampling().has_n() ? common.sampling().n() : 1;
  if (const auto best_of = fields.Integer("best_of", 1, 16); best_of.has_value() && *best_of != n) {
    fields.Fail("best_of", "must equal n; choosing among more choices is not supported");
  }
  call.choices_per_prompt = n;
  call.stream = ReadStreamOptions(fields);
  call.prompts = ReadPrompts(fields, common);
  if (!fields.status().ok()) return fields.status();
  return call;
}

}  // namespace tessera::gateway
