#include "services/cli/commands/inspect/inspect_command.h"

#include <cinttypes>
#include <cstdio>
#include <iostream>
#include <memory>
#include <string>

#include "engine/weights/checkpoint.h"
#include "engine/weights/concat.h"

namespace tessera::cli {
namespace {

using engine::Checkpoint;
using engine::Concat;
using engine::ExpertRole;
using engine::LayerConfig;
using engine::LayerKind;
using engine::MatrixRole;
using engine::WeightMatrix;

std::string Format(const WeightMatrix& m) {
  const std::string name(engine::WeightFormatName(m.format));
  if (m.group_size == 0) return name;
  return m.group_size == m.cols ? name + "/row" : Concat(name, "/g", m.group_size);
}

std::string Numbers(const LayerConfig& layer) {
  const auto& [kind, mamba, attention, moe, mlp] = layer;
  switch (kind) {
    case LayerKind::kMamba:
      return Concat(mamba.heads, " heads x ", mamba.head_dim, ", state ", mamba.state, ", ",
                    mamba.groups, " groups");
    case LayerKind::kAttention:
      return Concat(attention.heads, "/", attention.kv_heads, " heads x ", attention.head_dim);
    case LayerKind::kMoe:
      return Concat(moe.experts, " experts, ", moe.experts_per_token, " a token, width ",
                    moe.expert_width, ", latent ", moe.latent, ", shared ", moe.shared_width);
    case LayerKind::kMlp:
      return Concat("width ", mlp.width);
  }
  return "";
}

std::string Formats(const Checkpoint& checkpoint, uint32_t i, const LayerConfig& layer) {
  const auto of = [&](MatrixRole role) { return Format(checkpoint.Matrix(i, role)); };
  switch (layer.kind) {
    case LayerKind::kMamba:
      return Concat("in ", of(MatrixRole::kInProj), ", out ", of(MatrixRole::kOutProj));
    case LayerKind::kAttention:
      return Concat("q ", of(MatrixRole::kQProj), ", k ", of(MatrixRole::kKProj), ", v ",
                    of(MatrixRole::kVProj), ", o ", of(MatrixRole::kOProj));
    case LayerKind::kMoe:
      return Concat(
          "experts ", Format(checkpoint.ExpertMatrix(i, 0, ExpertRole::kUp)),
          layer.moe.shared_width == 0 ? std::string() : ", shared " + of(MatrixRole::kSharedUp));
    case LayerKind::kMlp:
      return Concat("up ", of(MatrixRole::kUpProj), ", down ", of(MatrixRole::kDownProj));
  }
  return "";
}

int Run(const std::string& model_dir) {
  auto opened = Checkpoint::Open(model_dir);
  if (!opened.ok()) {
    std::cerr << "tessera inspect: " << std::string(opened.status().message()) << "\n";
    return 1;
  }
  const Checkpoint& checkpoint = **opened;
  const engine::ModelConfig& config = checkpoint.config();
  std::printf("%s: %zu layers, hidden %u, vocabulary %u, context %u tokens\n",
              config.architecture.c_str(), config.layers.size(), config.hidden, config.vocab,
              config.context_tokens_max);
  std::printf("%" PRIu64 " tensors, %" PRIu64 " bytes of weights (%.3f GiB)\n",
              checkpoint.tensor_count(), checkpoint.weight_bytes(),
              static_cast<double>(checkpoint.weight_bytes()) / (1 << 30));
  std::printf("embeddings %s, lm_head %s%s\n", Format(checkpoint.Embeddings()).c_str(),
              Format(checkpoint.LmHead()).c_str(), config.tie_word_embeddings ? " (tied)" : "");
  for (uint32_t i = 0; i < config.layers.size(); ++i) {
    const LayerConfig& layer = config.layers[i];
    std::printf("%4u  %-9s  %-66s  %s\n", i, std::string(engine::LayerKindName(layer.kind)).c_str(),
                Numbers(layer).c_str(), Formats(checkpoint, i, layer).c_str());
  }
  const auto warnings = checkpoint.Warnings();
  for (const std::string& warning : warnings) std::printf("note: %s\n", warning.c_str());
  if (warnings.empty()) std::printf("no problems\n");
  return 0;
}

}  // namespace

void AddInspectCommand(CLI::App& app, int& exit_status) {
  auto model_dir = std::make_shared<std::string>();
  CLI::App* inspect = app.add_subcommand("inspect", "check a checkpoint and say what it holds");
  inspect->add_option("model_dir", *model_dir, "checkpoint in hub layout")->required();
  inspect->callback([model_dir, &exit_status] { exit_status = Run(*model_dir); });
}

}  // namespace tessera::cli
