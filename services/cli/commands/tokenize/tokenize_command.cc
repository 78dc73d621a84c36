#include "services/cli/commands/tokenize/tokenize_command.h"

#include <cstdint>
#include <functional>
#include <iostream>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "services/cli/line_filter.h"
#include "services/common/field_error.h"
#include "tokenizer/detokenizer/stream_decoder.h"
#include "tokenizer/detokenizer/token_table.h"

namespace tessera::cli {
namespace {

using Json = nlohmann::ordered_json;
using tokenizer::AddedTokens;
using tokenizer::TokenId;
using tokenizer::Tokenizer;

absl::StatusOr<bool> BoolField(const Json& line, const char* field) {
  const auto found = line.find(field);
  if (found == line.end() || found->is_null()) return false;
  if (found->is_boolean()) return found->get<bool>();
  return services::InvalidField(
      field, std::string("is of type ") + found->type_name() + "; give true or false");
}

// Whether the field says "text" instead of "parse".
absl::StatusOr<bool> IsText(const Json& line, const char* field) {
  const auto found = line.find(field);
  if (found == line.end() || found->is_null()) return false;
  if (found->is_string()) {
    if (found->get_ref<const std::string&>() == "parse") return false;
    if (found->get_ref<const std::string&>() == "text") return true;
  }
  return services::InvalidField(field, "give \"parse\" or \"text\"");
}

absl::StatusOr<tokenizer::EncodeOptions> ReadEncodeOptions(const Json& line) {
  const absl::StatusOr<bool> add_special_tokens = BoolField(line, "add_special_tokens");
  if (!add_special_tokens.ok()) return add_special_tokens.status();
  const absl::StatusOr<bool> special_text = IsText(line, "special_tokens");
  if (!special_text.ok()) return special_text.status();
  const absl::StatusOr<bool> added_text = IsText(line, "added_tokens");
  if (!added_text.ok()) return added_text.status();
  return tokenizer::EncodeOptions{.add_special_tokens = *add_special_tokens,
                                  .added_tokens = *added_text     ? AddedTokens::kAllAsText
                                                  : *special_text ? AddedTokens::kSpecialAsText
                                                                  : AddedTokens::kParse};
}

absl::StatusOr<std::vector<TokenId>> ReadIds(const Json& line) {
  const auto found = line.find("ids");
  if (found == line.end() || !found->is_array()) {
    return services::InvalidField("ids", "is missing; give a list of token ids");
  }
  std::vector<TokenId> ids;
  ids.reserve(found->size());
  for (size_t i = 0; i < found->size(); ++i) {
    const Json& id = (*found)[i];
    if (!id.is_number_unsigned() || id.get<uint64_t>() > std::numeric_limits<TokenId>::max()) {
      return services::InvalidField("ids[" + std::to_string(i) + "]",
                                    "is no token id; give a whole number from 0 to 4294967295");
    }
    ids.push_back(id.get<TokenId>());
  }
  return ids;
}

absl::Status CheckObject(const Json& line) {
  return line.is_object() ? absl::OkStatus()
                          : absl::InvalidArgumentError("the line is no JSON object");
}

using TokenizerLine = std::function<absl::StatusOr<Json>(const Tokenizer&, const Json&)>;

int Run(const std::string& model, const TokenizerLine& function) {
  const absl::StatusOr<std::unique_ptr<const Tokenizer>> tokenizer = Tokenizer::Load(model);
  if (!tokenizer.ok()) {
    std::cerr << "tessera: " << tokenizer.status().message() << '\n';
    return 2;
  }
  return RunLineFilter(std::cin, std::cout,
                       [&](const Json& line) { return function(**tokenizer, line); });
}

}  // namespace

absl::StatusOr<Json> TokenizeLine(const Tokenizer& tokenizer, bool offsets, const Json& line) {
  if (absl::Status s = CheckObject(line); !s.ok()) return s;
  const auto text = line.find("text");
  if (text == line.end() || !text->is_string()) {
    return services::InvalidField("text", "is missing; give a string");
  }
  const absl::StatusOr<tokenizer::EncodeOptions> options = ReadEncodeOptions(line);
  if (!options.ok()) return options.status();
  const auto& value = text->get_ref<const std::string&>();
  std::vector<TokenId> ids;
  std::vector<tokenizer::TokenSpan> spans;
  absl::Status status = tokenizer.EncodeTo(value, *options, ids, offsets ? &spans : nullptr);
  const bool no_spans = offsets && absl::IsUnimplemented(status);
  if (no_spans) status = tokenizer.EncodeTo(value, *options, ids);
  if (!status.ok()) return status;
  Json answer = {{"ids", ids}};
  if (!offsets) return answer;
  Json& list = answer["offsets"];  // null so far
  if (no_spans) return answer;
  list = Json::array();
  for (const tokenizer::TokenSpan& span : spans) {
    list.push_back(Json::array({span.begin, span.end}));
  }
  return answer;
}

absl::StatusOr<Json> DetokenizeLine(const Tokenizer& tokenizer, bool stream, const Json& line) {
  if (absl::Status s = CheckObject(line); !s.ok()) return s;
  const absl::StatusOr<std::vector<TokenId>> ids = ReadIds(line);
  if (!ids.ok()) return ids.status();
  const absl::StatusOr<bool> skip = BoolField(line, "skip_special_tokens");
  if (!skip.ok()) return skip.status();
  if (!stream) return Json{{"text", tokenizer.Decode(*ids, *skip)}};
  tokenizer::StreamDecoder decoder(tokenizer.token_table(), {.skip_special_tokens = *skip});
  Json deltas = Json::array();
  for (const TokenId id : *ids) {
    std::string text = decoder.Append(id);
    deltas.push_back(text.empty() ? Json(nullptr) : Json(std::move(text)));
  }
  return Json{{"deltas", std::move(deltas)}, {"rest", decoder.Finish()}};
}

void AddTokenizeCommands(CLI::App& app, int& exit_status) {
  struct Options {
    std::string model;
    bool flag = false;
  };
  constexpr char kModelHelp[] = "model directory, tokenizer.json or sentencepiece .model";

  CLI::App* const tokenize =
      app.add_subcommand("tokenize", "texts (JSON lines on stdin) to token ids");
  auto encode = std::make_shared<Options>();
  tokenize->add_option("--model", encode->model, kModelHelp)->required();
  tokenize->add_flag("--offsets", encode->flag, "answer with each token's bytes in the text too");
  tokenize->callback([encode, &exit_status] {
    exit_status = Run(encode->model, [&](const Tokenizer& tokenizer, const Json& line) {
      return TokenizeLine(tokenizer, encode->flag, line);
    });
  });

  CLI::App* const detokenize =
      app.add_subcommand("detokenize", "token ids (JSON lines on stdin) to texts");
  auto decode = std::make_shared<Options>();
  detokenize->add_option("--model", decode->model, kModelHelp)->required();
  detokenize->add_flag("--stream", decode->flag, "answer with the text that each id makes certain");
  detokenize->callback([decode, &exit_status] {
    exit_status = Run(decode->model, [&](const Tokenizer& tokenizer, const Json& line) {
      return DetokenizeLine(tokenizer, decode->flag, line);
    });
  });
}

}  // namespace tessera::cli
