#ifndef TESSERA_ENGINE_SERVER_ENGINE_METRICS_H_
#define TESSERA_ENGINE_SERVER_ENGINE_METRICS_H_

#include <memory>
#include <string>

#include "engine/executor/step_observer.h"
#include "engine/server/model_facts.h"
#include "prometheus/registry.h"
#include "services/common/log.h"

namespace tessera::engine {

// Turns the executor's facts into metrics (the table is in the .cc and in README.md) and one log
// line a request. Metric names that dashboards of vLLM know are kept, with finer buckets.
// Threading: StepObserver from the executor's thread, the others from any.
class EngineMetrics final : public StepObserver {
 public:
  EngineMetrics(prometheus::Registry& registry, const ModelFacts& model,
                const services::Logger& log);
  ~EngineMetrics() override;

  void OnStep(const StepFacts& facts) override;
  void OnToken(const TokenFacts& facts) override;
  void OnPreempted(uint32_t tokens_lost) override;
  void OnRequestEnd(const RequestFacts& facts) override;
  void OnLoad(const LoadFacts& facts) override;

  // A request that was refused before it reached the executor.
  void OnRefused(const absl::Status& status);
  void OnWorkerUp(double load_seconds);
  void OnWorkerDown();
  void OnWorkerRestart();
  void OnLoadBytes(uint64_t done, uint64_t total);

 private:
  struct Series;
  const std::unique_ptr<Series> series_;
  const services::Logger& log_;
};

}  // namespace tessera::engine

#endif  // TESSERA_ENGINE_SERVER_ENGINE_METRICS_H_
