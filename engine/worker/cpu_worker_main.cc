// tessera-worker for the CPU.

#include "engine/models/model.h"
#include "engine/worker/worker_process.h"

int main(int argc, char** argv) {
  return tessera::engine::RunWorkerProcess(argc, argv, "cpu", tessera::engine::LoadCpuModel);
}
