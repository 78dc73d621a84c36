#ifndef TESSERA_SERVICES_TOKENIZER_TOKENIZER_METRICS_H_
#define TESSERA_SERVICES_TOKENIZER_TOKENIZER_METRICS_H_

#include <string_view>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "prometheus/counter.h"
#include "prometheus/gauge.h"
#include "prometheus/histogram.h"
#include "prometheus/registry.h"
#include "services/common/metrics.h"

namespace tessera::services {

// What the tokenizer process shows at /metrics; the table is in the .cc and in the README.
// Threading: any thread. The references are for what is counted per message.
class TokenizerMetrics final {
 public:
  explicit TokenizerMetrics(prometheus::Registry& registry);

  // A call ended.
  void Ended(std::string_view method, absl::StatusCode code, absl::Duration took);
  // The engine answered with an error, or was lost.
  void EngineFailed(absl::StatusCode code);

 private:
  Metrics metrics_;

 public:
  prometheus::Counter& prompt_tokens;
  prometheus::Counter& generated_tokens;
  prometheus::Counter& prompt_characters;
  prometheus::Counter& generated_characters;
  prometheus::Counter& stop_string_ends;
  prometheus::Counter& protected_prompts;
  prometheus::Counter& slow_readers_cut;
  prometheus::Gauge& streams_open;
  prometheus::Gauge& engine_serving;
  prometheus::Gauge& model_load_seconds;
  prometheus::Histogram& prompt_build_seconds;
  prometheus::Histogram& time_to_first_text_seconds;
};

}  // namespace tessera::services

#endif  // TESSERA_SERVICES_TOKENIZER_TOKENIZER_METRICS_H_
