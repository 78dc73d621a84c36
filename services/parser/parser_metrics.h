#ifndef TESSERA_SERVICES_PARSER_PARSER_METRICS_H_
#define TESSERA_SERVICES_PARSER_PARSER_METRICS_H_

#include <string_view>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "prometheus/registry.h"
#include "services/common/metrics.h"
#include "services/parser/formats/output_parser.h"
#include "tessera/parser/v1/parser.pb.h"

namespace tessera::parser {

// The metrics of the parser process. Threading: any thread.
class ParserMetrics {
 public:
  explicit ParserMetrics(prometheus::Registry& registry);

  void StreamOpened();
  void StreamClosed();
  void SlowReaderCut();
  // One finished call of `method`.
  void CallEnded(std::string_view method, const absl::Status& status, absl::Duration took);
  // What one answer needed besides the rules.
  void AnswerEnded(const ParserCounters& counters, const v1::Usage& usage, uint64_t empty_replies);

 private:
  services::Metrics metrics_;
};

}  // namespace tessera::parser

#endif  // TESSERA_SERVICES_PARSER_PARSER_METRICS_H_
