#include "services/parser/parser_metrics.h"

#include <utility>
#include <vector>

#include "services/common/status_map.h"

namespace tessera::parser {
namespace {

enum Row : size_t {
  kRequests,
  kRequestSeconds,
  kStreamsOpen,
  kSlowReadersCut,
  kFallbacks,
  kEmptyReplies,
  kReasoningTokens,
};

const std::vector<services::MetricRow>& Table() {
  using services::MetricType;
  static const auto* const table = new std::vector<services::MetricRow>{
      {"tessera_parser_requests_total",
       MetricType::kCounter,
       "Calls by method and status code.",
       {"method", "code"}},
      {"tessera_parser_request_seconds",
       MetricType::kHistogram,
       "Duration of whole calls.",
       {"method"},
       services::kRequestSecondsBuckets},
      {"tessera_parser_streams_open", MetricType::kGauge, "Chat and completion calls under way."},
      {"tessera_parser_slow_readers_cut_total", MetricType::kCounter,
       "Streams ended because their reader was too slow."},
      {"tessera_parser_fallbacks_total",
       MetricType::kCounter,
       "Times that output was not as the format says and was repaired or kept as text.",
       {"kind"}},
      {"tessera_parser_empty_replies_total", MetricType::kCounter,
       "Answers without reasoning, content or calls."},
      {"tessera_parser_reasoning_tokens_total", MetricType::kCounter,
       "Tokens generated while reasoning."},
  };
  return *table;
}

}  // namespace

ParserMetrics::ParserMetrics(prometheus::Registry& registry) : metrics_(registry, Table()) {}

void ParserMetrics::StreamOpened() { metrics_.GaugeOf(kStreamsOpen).Increment(); }
void ParserMetrics::StreamClosed() { metrics_.GaugeOf(kStreamsOpen).Decrement(); }
void ParserMetrics::SlowReaderCut() { metrics_.CounterOf(kSlowReadersCut).Increment(); }

void ParserMetrics::CallEnded(std::string_view method, const absl::Status& status,
                              absl::Duration took) {
  metrics_.CounterOf(kRequests, {method, services::CodeName(status.code())}).Increment();
  metrics_.HistogramOf(kRequestSeconds, {method}).Observe(absl::ToDoubleSeconds(took));
}

void ParserMetrics::AnswerEnded(const ParserCounters& counters, const v1::Usage& usage,
                                uint64_t empty_replies) {
  const std::pair<std::string_view, uint64_t> kinds[] = {
      {"raw_string", counters.raw_strings},
      {"malformed_call", counters.malformed_calls},
      {"marker_as_text", counters.markers_as_text},
      {"parameter_dropped", counters.parameters_dropped},
      {"call_dropped", counters.calls_dropped},
      {"implicit_reasoning_end", counters.implicit_reasoning_ends},
      {"promoted_reply", counters.promoted_replies},
      {"invalid_utf8", counters.invalid_utf8},
      {"limit", counters.limits_hit},
  };
  for (const auto& [kind, count] : kinds) {
    if (count != 0) metrics_.CounterOf(kFallbacks, {kind}).Increment(static_cast<double>(count));
  }
  if (empty_replies != 0) {
    metrics_.CounterOf(kEmptyReplies).Increment(static_cast<double>(empty_replies));
  }
  metrics_.CounterOf(kReasoningTokens).Increment(usage.reasoning_tokens());
}

}  // namespace tessera::parser
