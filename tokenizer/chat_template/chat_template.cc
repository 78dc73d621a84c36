#include "tokenizer/chat_template/chat_template.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "tokenizer/chat_template/interpreter.h"
#include "tokenizer/chat_template/parser.h"
#include "tokenizer/chat_template/supported.h"

namespace tessera::tokenizer {
namespace {

constexpr char kErrorPayload[] = "tessera.template_error";

absl::Status ToStatus(const TemplateError& error, const std::string& name) {
  const auto code = error.limit == "time" ? absl::StatusCode::kResourceExhausted
                                          : absl::StatusCode::kInvalidArgument;
  absl::Status status(code, absl::StrCat("chat template ", name,
                                         error.line > 0 ? absl::StrCat(", line ", error.line) : "",
                                         ": ", error.type, ": ", error.message));
  const nlohmann::json payload = {{"type", error.type},
                                  {"message", error.message},
                                  {"line", error.line},
                                  {"column", error.column},
                                  {"limit", error.limit}};
  status.SetPayload(kErrorPayload, absl::Cord(payload.dump(
                                       -1, ' ', false, nlohmann::json::error_handler_t::replace)));
  return status;
}

}  // namespace

std::optional<TemplateError> TemplateErrorOf(const absl::Status& status) {
  const absl::optional<absl::Cord> payload = status.GetPayload(kErrorPayload);
  if (!payload.has_value()) return std::nullopt;
  const auto json =
      nlohmann::json::parse(std::string(*payload), nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return std::nullopt;
  return TemplateError{.type = json.value("type", ""),
                       .message = json.value("message", ""),
                       .line = json.value("line", 0),
                       .column = json.value("column", 0),
                       .limit = json.value("limit", "")};
}

struct ChatTemplate::Compiled {
  std::string name;
  jinja::Tree tree;
  std::vector<std::string> variables;
};

ChatTemplate::ChatTemplate(std::unique_ptr<const Compiled> compiled)
    : compiled_(std::move(compiled)) {}
ChatTemplate::~ChatTemplate() = default;

absl::StatusOr<std::unique_ptr<const ChatTemplate>> ChatTemplate::Compile(std::string_view source,
                                                                          std::string_view name) {
  auto compiled = std::make_unique<Compiled>();
  compiled->name = name;
  if (source.size() > kSourceBytesMax) {
    return ToStatus({.type = "LimitError",
                     .message = absl::StrCat("the template has ", source.size(),
                                             " bytes; the limit is ", kSourceBytesMax),
                     .limit = "source_bytes"},
                    compiled->name);
  }
  std::optional<TemplateError> error = jinja::Parse(source, compiled->tree);
  if (!error.has_value()) error = jinja::FindUnsupported(compiled->tree);
  if (error.has_value()) return ToStatus(*error, compiled->name);
  jinja::MarkSpecialNames(compiled->tree);
  const std::set<std::string> names = jinja::ContextNames(compiled->tree);
  compiled->variables.assign(names.begin(), names.end());
  return std::unique_ptr<const ChatTemplate>(new ChatTemplate(std::move(compiled)));
}

absl::StatusOr<Rendered> ChatTemplate::Render(const nlohmann::ordered_json& context,
                                              const RenderLimits& limits,
                                              const RenderClock& clock) const {
  jinja::Interpreter interpreter(compiled_->tree, context, limits, clock);
  jinja::TextBuilder out;
  if (!interpreter.Run(out)) return ToStatus(*interpreter.error(), compiled_->name);
  Rendered rendered;
  rendered.text = out.text();
  rendered.generation_spans = interpreter.generation_spans();
  size_t begin = 0;
  for (const jinja::Run& run : out.runs()) {
    rendered.spans.push_back({begin, run.end, run.from_context});
    begin = run.end;
  }
  return rendered;
}

const std::vector<std::string>& ChatTemplate::variables() const { return compiled_->variables; }

bool ChatTemplate::Reads(std::string_view variable) const {
  return std::binary_search(compiled_->variables.begin(), compiled_->variables.end(), variable);
}

const std::string& ChatTemplate::name() const { return compiled_->name; }

}  // namespace tessera::tokenizer
