#include "services/cli/commands/render/render_command.h"

#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "services/cli/line_filter.h"
#include "services/common/clock.h"
#include "services/common/field_error.h"

namespace tessera::cli {
namespace {

using Json = nlohmann::ordered_json;

struct Flags {
  std::string template_file;
  std::string now;
};

Json ErrorOf(const absl::Status& status) {
  const std::optional<tokenizer::TemplateError> error = tokenizer::TemplateErrorOf(status);
  if (!error) return {{"error", {{"type", "Error"}, {"message", std::string(status.message())}}}};
  Json shown = {{"type", error->type}, {"message", error->message}};
  if (error->line > 0) shown["line"] = error->line;
  return {{"error", std::move(shown)}};
}

absl::StatusOr<std::unique_ptr<const tokenizer::ChatTemplate>> ReadTemplate(
    const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    return absl::NotFoundError(absl::StrCat("--template ", path, ": the file cannot be opened"));
  }
  std::string source(tokenizer::ChatTemplate::kSourceBytesMax + 1, '\0');
  file.read(source.data(), static_cast<std::streamsize>(source.size()));
  source.resize(static_cast<size_t>(file.gcount()));
  return tokenizer::ChatTemplate::Compile(source, path);
}

absl::StatusOr<int> Run(const Flags& flags) {
  tokenizer::RenderClock clock;
  clock.monotonic = [] { return services::RealClock().Monotonic(); };
  if (!flags.now.empty()) {
    const absl::StatusOr<absl::CivilSecond> now = ParseIsoTime(flags.now);
    if (!now.ok()) return now.status();
    clock.now = *now;
  } else {
    clock.now = absl::ToCivilSecond(services::RealClock().Wall(), absl::LocalTimeZone());
  }
  std::unique_ptr<const tokenizer::ChatTemplate> preset;
  if (!flags.template_file.empty()) {
    absl::StatusOr<std::unique_ptr<const tokenizer::ChatTemplate>> read =
        ReadTemplate(flags.template_file);
    if (!read.ok()) return read.status();
    preset = *std::move(read);
  }
  bool failed = false;
  const int status = RunLineFilter(std::cin, std::cout, [&](const Json& line) {
    return RenderLine(preset.get(), clock, line, failed);
  });
  return failed ? 1 : status;
}

}  // namespace

absl::StatusOr<absl::CivilSecond> ParseIsoTime(const std::string& text) {
  absl::CivilSecond time;
  std::string iso = text;
  if (iso.size() > 10 && iso[10] == ' ') iso[10] = 'T';
  if (!absl::ParseCivilTime(iso, &time)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--now ", text, ": give a time like 2025-03-07T14:05:09"));
  }
  return time;
}

absl::StatusOr<Json> RenderLine(const tokenizer::ChatTemplate* preset,
                                const tokenizer::RenderClock& clock, const Json& line,
                                bool& failed) {
  if (!line.is_object()) return absl::InvalidArgumentError("the line is no JSON object");
  const auto context = line.find("context");
  if (context == line.end() || !context->is_object()) {
    return services::InvalidField("context", "is missing; give the variables as an object");
  }
  std::unique_ptr<const tokenizer::ChatTemplate> own;
  if (const auto source = line.find("template"); source != line.end()) {
    if (!source->is_string()) return services::InvalidField("template", "is no string");
    absl::StatusOr<std::unique_ptr<const tokenizer::ChatTemplate>> compiled =
        tokenizer::ChatTemplate::Compile(source->get_ref<const std::string&>(), "template");
    if (!compiled.ok()) {
      failed = true;
      return ErrorOf(compiled.status());
    }
    own = *std::move(compiled);
  } else if (preset == nullptr) {
    return services::InvalidField("template", "is missing; give it here or with --template FILE");
  }
  const absl::StatusOr<tokenizer::Rendered> rendered =
      (own != nullptr ? own.get() : preset)->Render(*context, tokenizer::RenderLimits(), clock);
  if (!rendered.ok()) {
    failed = true;
    return ErrorOf(rendered.status());
  }
  Json answer = {{"text", rendered->text}};
  for (const tokenizer::GenerationSpan& span : rendered->generation_spans) {
    answer["generation_spans"].push_back(Json::array({span.begin, span.end}));
  }
  return answer;
}

void AddRenderCommand(CLI::App& app, int& exit_status) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command = app.add_subcommand(
      "render", "Render chat templates: JSON lines {\"template\"?,\"context\"} to {\"text\"}");
  command->add_option("--template", flags->template_file,
                      "template for lines that have none of their own");
  command->add_option("--now", flags->now, "what strftime_now sees, as 2025-03-07T14:05:09");
  command->callback([flags, &exit_status]() {
    const absl::StatusOr<int> status = Run(*flags);
    if (!status.ok()) std::cerr << "tessera render: " << status.status().message() << '\n';
    exit_status = status.ok() ? *status : 2;
  });
}

}  // namespace tessera::cli
