#include "engine/server/engine_metrics.h"

#include <algorithm>
#include <vector>

#include "services/common/metrics.h"
#include "services/common/status_map.h"

namespace tessera::engine {
namespace {

using services::MetricRow;
using services::MetricType;

enum Row : size_t {
  kRequestsRunning,
  kRequestsWaiting,
  kRequestsWaitingByReason,
  kKvUsage,
  kPreemptions,
  kPromptTokens,
  kGenerationTokens,
  kRequestSuccess,
  kPrefixQueries,
  kPrefixHits,
  kCorrupted,
  kTimeToFirstToken,
  kInterToken,
  kTimePerOutputToken,
  kE2eLatency,
  kQueueTime,
  kInferenceTime,
  kPrefillTime,
  kDecodeTime,
  kRequestPromptTokens,
  kRequestGenerationTokens,
  kRequestMaxGenerationTokens,
  kParamsN,
  kParamsMaxTokens,
  kIterationTokens,
  kSlotsUsed,
  kSlotsTotal,
  kBlocksUsed,
  kBlocksTotal,
  kSteps,
  kStepDevice,
  kStepRoundTrip,
  kRequests,
  kTokensRecomputed,
  kNotFinite,
  kWorkerUp,
  kWorkerRestarts,
  kLoadSeconds,
  kLoadBytes,
  kLoadBytesTotal,
  kBuildInfo,
  kRowCount,
};

const std::vector<double> kStepBuckets = {.0001, .0002, .0005, .001, .002, .003, .005, .0075, .01,
                                          .015,  .02,   .03,   .05,  .1,   .2,   .5,   1,     5};

// Long because it is the table of metrics, a row each.
std::vector<MetricRow> Table(const ModelFacts& model) {
  const auto counter = MetricType::kCounter;
  const auto gauge = MetricType::kGauge;
  const auto histogram = MetricType::kHistogram;
  const std::vector<double> tokens = services::TokenCountBuckets(model.context_tokens_max);
  const std::vector<double>& seconds = services::kRequestSecondsBuckets;
  std::vector<MetricRow> table = {
      {"vllm:num_requests_running", gauge, "Requests being worked on."},
      {"vllm:num_requests_waiting", gauge, "Requests in the queue."},
      {"vllm:num_requests_waiting_by_reason",
       gauge,
       "Requests in the queue, by what the first of them lacks.",
       {"reason"}},
      {"vllm:kv_cache_usage_perc", gauge, "Share of KV blocks in use, 0 to 1."},
      {"vllm:num_preemptions_total", counter, "Sequences preempted to be computed anew."},
      {"vllm:prompt_tokens_total", counter, "Prompt tokens computed."},
      {"vllm:generation_tokens_total", counter, "Tokens generated."},
      {"vllm:request_success_total",
       counter,
       "Choices that ended, by reason.",
       {"finished_reason"}},
      {"vllm:prefix_cache_queries_total", counter, "Prompt tokens looked up in the prefix cache."},
      {"vllm:prefix_cache_hits_total", counter, "Of these, tokens found."},
      {"vllm:corrupted_requests_total", counter, "Requests whose logits were not finite."},
      {"vllm:time_to_first_token_seconds",
       histogram,
       "From submission to the first token.",
       {},
       services::kTimeToFirstTokenBuckets},
      {"vllm:inter_token_latency_seconds",
       histogram,
       "Between two tokens of a choice.",
       {},
       services::kInterTokenBuckets},
      {"vllm:request_time_per_output_token_seconds",
       histogram,
       "Mean time between the tokens of a request.",
       {},
       services::kInterTokenBuckets},
      {"vllm:e2e_request_latency_seconds", histogram, "From submission to the end.", {}, seconds},
      {"vllm:request_queue_time_seconds", histogram, "Submission to first step.", {}, seconds},
      {"vllm:request_inference_time_seconds", histogram, "First step to last token.", {}, seconds},
      {"vllm:request_prefill_time_seconds", histogram, "First step to first token.", {}, seconds},
      {"vllm:request_decode_time_seconds", histogram, "First to last token.", {}, seconds},
      {"vllm:request_prompt_tokens", histogram, "Prompt tokens of a request.", {}, tokens},
      {"vllm:request_generation_tokens", histogram, "Tokens generated for one.", {}, tokens},
      {"vllm:request_max_num_generation_tokens",
       histogram,
       "Most tokens of any choice of a request.",
       {},
       tokens},
      {"vllm:request_params_n", histogram, "Choices asked for.", {}, {1, 2, 5, 10, 20}},
      {"vllm:request_params_max_tokens", histogram, "max_tokens in effect.", {}, tokens},
      {"vllm:iteration_tokens_total", histogram, "Tokens computed by a step.", {}, tokens},
      {"tessera_slots_used", gauge, "State slots in use."},
      {"tessera_slots", gauge, "State slots there are."},
      {"tessera_kv_blocks_used", gauge, "KV blocks in use."},
      {"tessera_kv_blocks", gauge, "KV blocks there are."},
      {"tessera_steps_total", counter, "Steps, by what they computed.", {"kind"}},
      {"tessera_step_device_seconds", histogram, "A step on the device.", {}, kStepBuckets},
      {"tessera_step_round_trip_seconds",
       histogram,
       "From sending a plan to its result, time behind the plan before it included.",
       {},
       kStepBuckets},
      {"tessera_requests_total",
       counter,
       "Requests that ended or were refused, by code.",
       {"code"}},
      {"tessera_tokens_recomputed_total", counter, "Tokens lost to preemption."},
      {"tessera_not_finite_total", counter, "Sampling steps with logits that were not finite."},
      {"tessera_worker_up", gauge, "1 while the worker can serve."},
      {"tessera_worker_restarts_total", counter, "Workers started after the first."},
      {"tessera_load_seconds", gauge, "How long the last load took."},
      {"tessera_load_bytes", gauge, "Bytes of weights that the load under way has read."},
      {"tessera_load_bytes_expected", gauge, "Bytes of weights in all."},
      {"tessera_build_info", gauge, "Always 1; says what runs.", {"version", "device"}},
  };
  return table;
}

const char* ReasonName(FinishReason reason) {
  switch (reason) {
    case FinishReason::kStop:
      return "stop";
    case FinishReason::kLength:
      return "length";
    case FinishReason::kAbort:
      return "abort";
  }
  return "unknown";
}

double Seconds(uint64_t us) { return static_cast<double>(us) * 1e-6; }

}  // namespace

// Looked up once; what is counted per token must not search for its series.
struct EngineMetrics::Series {
  Series(prometheus::Registry& registry, const ModelFacts& model)
      : metrics(registry, Table(model), {{"model_name", model.name}, {"engine", "0"}}) {
    for (size_t row = 0; row < kRowCount; ++row) {
      counters.push_back(nullptr);
      gauges.push_back(nullptr);
      histograms.push_back(nullptr);
    }
    const std::vector<MetricRow> table = Table(model);
    for (size_t row = 0; row < kRowCount; ++row) {
      if (!table[row].labels.empty()) continue;
      if (table[row].type == MetricType::kCounter) counters[row] = &metrics.CounterOf(row);
      if (table[row].type == MetricType::kGauge) gauges[row] = &metrics.GaugeOf(row);
      if (table[row].type == MetricType::kHistogram) histograms[row] = &metrics.HistogramOf(row);
    }
    for (const char* reason : {"stop", "length", "abort"}) {
      metrics.CounterOf(kRequestSuccess, {reason});
    }
    metrics.GaugeOf(kBuildInfo, {model.version, model.device}).Set(1);
  }

  services::Metrics metrics;
  std::vector<prometheus::Counter*> counters;
  std::vector<prometheus::Gauge*> gauges;
  std::vector<prometheus::Histogram*> histograms;
  prometheus::Gauge& waiting_capacity = metrics.GaugeOf(kRequestsWaitingByReason, {"capacity"});
  prometheus::Gauge& waiting_deferred = metrics.GaugeOf(kRequestsWaitingByReason, {"deferred"});
  prometheus::Counter& steps_prefill = metrics.CounterOf(kSteps, {"prefill"});
  prometheus::Counter& steps_decode = metrics.CounterOf(kSteps, {"decode"});
  prometheus::Counter& steps_mixed = metrics.CounterOf(kSteps, {"mixed"});
};

EngineMetrics::EngineMetrics(prometheus::Registry& registry, const ModelFacts& model,
                             const services::Logger& log)
    : series_(std::make_unique<Series>(registry, model)), log_(log) {}

EngineMetrics::~EngineMetrics() = default;

void EngineMetrics::OnStep(const StepFacts& facts) {
  Series& s = *series_;
  if (facts.prefill_tokens > 0 && facts.decode_tokens > 0) {
    s.steps_mixed.Increment();
  } else {
    (facts.prefill_tokens > 0 ? s.steps_prefill : s.steps_decode).Increment();
  }
  s.counters[kGenerationTokens]->Increment(facts.tokens_generated);
  s.histograms[kIterationTokens]->Observe(facts.prefill_tokens + facts.decode_tokens);
  s.histograms[kStepDevice]->Observe(Seconds(facts.device_us));
  s.histograms[kStepRoundTrip]->Observe(Seconds(facts.round_trip_us));
}

void EngineMetrics::OnToken(const TokenFacts& facts) {
  if (facts.not_finite) {
    series_->counters[kNotFinite]->Increment();
    series_->counters[kCorrupted]->Increment();
    return;
  }
  series_->histograms[facts.first ? kTimeToFirstToken : kInterToken]->Observe(
      Seconds(facts.since_us));
}

void EngineMetrics::OnPreempted(uint32_t tokens_lost) {
  series_->counters[kPreemptions]->Increment();
  series_->counters[kTokensRecomputed]->Increment(tokens_lost);
}

void EngineMetrics::OnRequestEnd(const RequestFacts& facts) {
  Series& s = *series_;
  uint32_t tokens_max = 0;
  for (const ChoiceEnd& end : facts.choices) {
    s.metrics.CounterOf(kRequestSuccess, {ReasonName(end.reason)}).Increment();
    tokens_max = std::max(tokens_max, end.completion_tokens);
  }
  const auto code = services::CodeName(facts.status.code());
  s.metrics.CounterOf(kRequests, {code}).Increment();
  // Once any token is out the whole prompt has been computed.
  if (facts.had_token) s.counters[kPromptTokens]->Increment(facts.prompt_tokens);
  s.histograms[kQueueTime]->Observe(Seconds(facts.queue_us));
  if (facts.status.ok()) {
    s.histograms[kE2eLatency]->Observe(Seconds(facts.total_us));
    s.histograms[kRequestPromptTokens]->Observe(facts.prompt_tokens);
    s.histograms[kRequestGenerationTokens]->Observe(facts.completion_tokens);
    s.histograms[kRequestMaxGenerationTokens]->Observe(tokens_max);
    s.histograms[kParamsN]->Observe(facts.choices_asked);
    s.histograms[kParamsMaxTokens]->Observe(facts.max_tokens);
  }
  if (facts.status.ok() && facts.had_token) {
    s.histograms[kInferenceTime]->Observe(Seconds(facts.prefill_us + facts.decode_us));
    s.histograms[kPrefillTime]->Observe(Seconds(facts.prefill_us));
    s.histograms[kDecodeTime]->Observe(Seconds(facts.decode_us));
    if (tokens_max > 1) {
      s.histograms[kTimePerOutputToken]->Observe(Seconds(facts.decode_us) / (tokens_max - 1));
    }
  }
  if (!log_.Enabled(services::LogLevel::kInfo)) return;
  log_.Info(
      "request ended",
      {{"request_id", facts.request_id},
       {"code", code},
       {"finish_reason", facts.choices.empty() ? "" : ReasonName(facts.choices.front().reason)},
       {"prompt_tokens", facts.prompt_tokens},
       {"completion_tokens", facts.completion_tokens},
       {"queue_ms", Seconds(facts.queue_us) * 1e3},
       {"prefill_ms", Seconds(facts.prefill_us) * 1e3},
       {"decode_ms", Seconds(facts.decode_us) * 1e3}});
}

void EngineMetrics::OnLoad(const LoadFacts& facts) {
  Series& s = *series_;
  s.gauges[kRequestsRunning]->Set(facts.requests_running);
  s.gauges[kRequestsWaiting]->Set(facts.requests_waiting);
  const bool deferred = facts.wait_reason == WaitReason::kTokensShort ||
                        facts.wait_reason == WaitReason::kResultShort;
  s.waiting_capacity.Set(deferred ? 0 : facts.requests_waiting);
  s.waiting_deferred.Set(deferred ? facts.requests_waiting : 0);
  s.gauges[kKvUsage]->Set(static_cast<double>(facts.blocks_used) / facts.blocks_total);
  s.gauges[kSlotsUsed]->Set(facts.slots_used);
  s.gauges[kSlotsTotal]->Set(facts.slots_total);
  s.gauges[kBlocksUsed]->Set(facts.blocks_used);
  s.gauges[kBlocksTotal]->Set(facts.blocks_total);
}

void EngineMetrics::OnRefused(const absl::Status& status) {
  series_->metrics.CounterOf(kRequests, {services::CodeName(status.code())}).Increment();
}

void EngineMetrics::OnWorkerUp(double load_seconds) {
  series_->gauges[kWorkerUp]->Set(1);
  series_->gauges[kLoadSeconds]->Set(load_seconds);
}

void EngineMetrics::OnWorkerDown() { series_->gauges[kWorkerUp]->Set(0); }

void EngineMetrics::OnWorkerRestart() { series_->counters[kWorkerRestarts]->Increment(); }

void EngineMetrics::OnLoadBytes(uint64_t done, uint64_t total) {
  series_->gauges[kLoadBytes]->Set(static_cast<double>(done));
  series_->gauges[kLoadBytesTotal]->Set(static_cast<double>(total));
}

}  // namespace tessera::engine
