#include "services/tokenizer/tokenizer_metrics.h"

#include "services/common/status_map.h"

namespace tessera::services {
namespace {

enum Row : size_t {
  kRequests,
  kRequestSeconds,
  kEngineErrors,
  kPromptTokens,
  kGeneratedTokens,
  kPromptCharacters,
  kGeneratedCharacters,
  kStopStringEnds,
  kProtectedPrompts,
  kSlowReadersCut,
  kStreamsOpen,
  kEngineServing,
  kModelLoadSeconds,
  kPromptBuildSeconds,
  kTimeToFirstText,
};

// In the order of Row.
std::vector<MetricRow> Table() {
  return {
      {"tessera_tokenizer_requests_total",
       MetricType::kCounter,
       "Calls that ended, by code.",
       {"method", "code"}},
      {"tessera_tokenizer_request_duration_seconds",
       MetricType::kHistogram,
       "From the arrival of a call to its end.",
       {"method"},
       kRequestSecondsBuckets},
      {"tessera_tokenizer_upstream_errors_total",
       MetricType::kCounter,
       "Calls to the engine that failed, by code.",
       {"code"}},
      {"tessera_tokenizer_prompt_tokens_total", MetricType::kCounter,
       "Tokens of prompts sent to the engine."},
      {"tessera_tokenizer_generated_tokens_total", MetricType::kCounter,
       "Tokens received from the engine and turned into text."},
      {"tessera_tokenizer_prompt_characters_total", MetricType::kCounter,
       "Code points of prompts that were rendered or given as text."},
      {"tessera_tokenizer_generated_characters_total", MetricType::kCounter,
       "Code points sent to callers."},
      {"tessera_tokenizer_stop_string_ends_total", MetricType::kCounter,
       "Choices that a stop string ended."},
      {"tessera_tokenizer_protected_prompts_total", MetricType::kCounter,
       "Prompts in which a caller's text spelled a control token and was kept text."},
      {"tessera_tokenizer_slow_readers_cut_total", MetricType::kCounter,
       "Streams that ended because the reader was too slow."},
      {"tessera_tokenizer_streams_open", MetricType::kGauge, "Generate streams that run."},
      {"tessera_tokenizer_engine_serving", MetricType::kGauge,
       "Whether the engine says that it can serve (1) or not (0)."},
      {"tessera_tokenizer_model_load_seconds", MetricType::kGauge,
       "How long reading the tokenizer and the templates took."},
      {"tessera_tokenizer_prompt_build_seconds",
       MetricType::kHistogram,
       "Rendering and encoding of a prompt.",
       {},
       kRpcSecondsBuckets},
      {"tessera_tokenizer_time_to_first_text_seconds",
       MetricType::kHistogram,
       "From the arrival of a Generate call to its first text.",
       {},
       kTimeToFirstTokenBuckets},
  };
}

}  // namespace

TokenizerMetrics::TokenizerMetrics(prometheus::Registry& registry)
    : metrics_(registry, Table()),
      prompt_tokens(metrics_.CounterOf(kPromptTokens)),
      generated_tokens(metrics_.CounterOf(kGeneratedTokens)),
      prompt_characters(metrics_.CounterOf(kPromptCharacters)),
      generated_characters(metrics_.CounterOf(kGeneratedCharacters)),
      stop_string_ends(metrics_.CounterOf(kStopStringEnds)),
      protected_prompts(metrics_.CounterOf(kProtectedPrompts)),
      slow_readers_cut(metrics_.CounterOf(kSlowReadersCut)),
      streams_open(metrics_.GaugeOf(kStreamsOpen)),
      engine_serving(metrics_.GaugeOf(kEngineServing)),
      model_load_seconds(metrics_.GaugeOf(kModelLoadSeconds)),
      prompt_build_seconds(metrics_.HistogramOf(kPromptBuildSeconds)),
      time_to_first_text_seconds(metrics_.HistogramOf(kTimeToFirstText)) {}

void TokenizerMetrics::Ended(std::string_view method, absl::StatusCode code, absl::Duration took) {
  metrics_.CounterOf(kRequests, {method, CodeName(code)}).Increment();
  metrics_.HistogramOf(kRequestSeconds, {method}).Observe(absl::ToDoubleSeconds(took));
}

void TokenizerMetrics::EngineFailed(absl::StatusCode code) {
  metrics_.CounterOf(kEngineErrors, {CodeName(code)}).Increment();
}

}  // namespace tessera::services
