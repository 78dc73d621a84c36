#include "services/parser/formats/tool_formats.h"

#include "services/parser/formats/hermes.h"
#include "services/parser/formats/llama3_json.h"
#include "services/parser/formats/mistral.h"
#include "services/parser/formats/qwen3_coder.h"

namespace tessera::parser {
namespace {

template <typename Syntax>
std::unique_ptr<ToolSyntax> Make(const SyntaxContext& context) {
  return std::make_unique<Syntax>(context);
}

struct ToolFormat {
  std::string_view name;
  std::unique_ptr<ToolSyntax> (*make)(const SyntaxContext& context);
};

constexpr ToolFormat kFormats[] = {
    {"qwen3_coder", Make<Qwen3CoderSyntax>},
    {"hermes", Make<HermesSyntax>},
    {"llama3_json", Make<Llama3JsonSyntax>},
    {"mistral", Make<MistralSyntax>},
    {"none", nullptr},
};

}  // namespace

std::vector<std::string_view> ToolFormatTable() {
  std::vector<std::string_view> names;
  for (const ToolFormat& format : kFormats) names.push_back(format.name);
  return names;
}

std::unique_ptr<ToolSyntax> MakeToolSyntax(std::string_view name, const SyntaxContext& context) {
  for (const ToolFormat& format : kFormats) {
    if (format.name == name && format.make != nullptr) return format.make(context);
  }
  return nullptr;
}

}  // namespace tessera::parser
