// A worker whose model is HashModel, for process tests that need no weights. The vocabulary is
// fixed at the demo model's, so that the engine can read that one's configuration.

#include "engine/worker/hash_model.h"
#include "engine/worker/worker_process.h"

namespace tessera::engine {
namespace {

absl::StatusOr<std::unique_ptr<Model>> LoadHashModel(const std::string&, const ModelLimits& limits,
                                                     const LoadProgress& progress,
                                                     std::vector<std::string>*) {
  progress("read", 1, 1);
  return std::make_unique<HashModel>(4096, limits);
}

}  // namespace
}  // namespace tessera::engine

int main(int argc, char** argv) {
  return tessera::engine::RunWorkerProcess(argc, argv, "cpu", tessera::engine::LoadHashModel);
}
