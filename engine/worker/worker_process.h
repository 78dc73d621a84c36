#ifndef TESSERA_ENGINE_WORKER_WORKER_PROCESS_H_
#define TESSERA_ENGINE_WORKER_WORKER_PROCESS_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/models/model.h"

namespace tessera::engine {

// Turns a checkpoint into a model on the device that this binary is for.
using ModelLoader = std::function<absl::StatusOr<std::unique_ptr<Model>>(
    const std::string& model_path, const ModelLimits& limits, const LoadProgress& progress,
    std::vector<std::string>* warnings)>;

// The main of a worker process for `device` ("cpu"): parses flags, serves one engine on --socket,
// and returns the exit code: 0 once the engine has gone, 1 after a device error, 2 for a bad flag.
// It dies with the process that started it (PR_SET_PDEATHSIG), however that one ends.
int RunWorkerProcess(int argc, char** argv, const std::string& device, const ModelLoader& loader);

}  // namespace tessera::engine

#endif  // TESSERA_ENGINE_WORKER_WORKER_PROCESS_H_
