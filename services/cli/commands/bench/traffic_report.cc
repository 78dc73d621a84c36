#include "services/cli/commands/bench/traffic_report.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace tessera::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kBarColumns = 40;
constexpr size_t kErrorBytesShown = 200;

// A thousandth of a millisecond is more than can be measured.
double Rounded(double value) { return std::round(value * 1000) / 1000; }

Json DistributionJson(const Distribution& d) {
  return {{"mean", Rounded(d.mean)},
          {"p50", Rounded(d.p50)},
          {"p90", Rounded(d.p90)},
          {"p99", Rounded(d.p99)},
          {"max", Rounded(d.max)}};
}

double GoodShare(const TrafficSummary& summary) {
  if (summary.requests == 0) return 0;
  return static_cast<double>(summary.good) / static_cast<double>(summary.requests);
}

std::string Bar(double value, double most) {
  if (most <= 0 || value <= 0) return "";
  // What is there at all is seen.
  const double columns = std::max(1.0, std::round(kBarColumns * value / most));
  return std::string(static_cast<size_t>(columns), '#');
}

void AppendRow(std::string& out, const char* name, const Distribution& d) {
  if (d.count == 0) return;
  absl::StrAppendFormat(&out, "  %-18s %9.2f %9.2f %9.2f %9.2f %9.2f\n", name, d.mean, d.p50, d.p90,
                        d.p99, d.max);
}

void AppendHistogram(std::string& out, const char* title, const Distribution& d) {
  if (d.buckets.size() < 2) return;
  absl::StrAppend(&out, "\n", title, "\n");
  const auto most = static_cast<double>(*std::max_element(d.buckets.begin(), d.buckets.end()));
  for (size_t i = 0; i < d.buckets.size(); ++i) {
    const double begin = d.bucket_begin + static_cast<double>(i) * d.bucket_width;
    const bool last = i + 1 == d.buckets.size();
    const std::string end = last ? "        " : absl::StrFormat("%8.2f", begin + d.bucket_width);
    absl::StrAppendFormat(&out, "  %8.2f .. %s %8d %s\n", begin, end, d.buckets[i],
                          Bar(static_cast<double>(d.buckets[i]), most));
  }
}

void AppendTimeline(std::string& out, const TrafficSummary& summary) {
  if (summary.timeline.empty() || summary.output_tokens == 0) return;
  out += "\noutput tokens/s over time (seconds)\n";
  const double most = *std::max_element(summary.timeline.begin(), summary.timeline.end());
  const double slot_s = summary.seconds / static_cast<double>(summary.timeline.size());
  for (size_t i = 0; i < summary.timeline.size(); ++i) {
    absl::StrAppendFormat(&out, "  %8.2f %10.0f %s\n", static_cast<double>(i) * slot_s,
                          summary.timeline[i], Bar(summary.timeline[i], most));
  }
}

void AppendErrors(std::string& out, const TrafficSummary& summary) {
  for (const auto& [kind, count] : summary.errors) {
    absl::StrAppendFormat(&out, "  failed: %d x %s\n", count, kind);
  }
  if (!summary.first_error.empty()) {
    absl::StrAppend(&out, "  the first said: ", summary.first_error.substr(0, kErrorBytesShown),
                    "\n");
  }
}

}  // namespace

Json TrafficJson(const TrafficSetup& setup, const TrafficSummary& summary) {
  Json out = {{"bench", setup.bench}, {"target", setup.target}};
  out.update(setup.settings);
  out["requests_done"] = summary.requests - summary.failed;
  out["requests_failed"] = summary.failed;
  if (summary.failed > 0) {
    out["errors"] = summary.errors;
    out["first_error"] = summary.first_error;
  }
  out["seconds"] = Rounded(summary.seconds);
  out["prompt_tokens"] = summary.prompt_tokens;
  out["output_tokens"] = summary.output_tokens;
  out["output_tokens_per_second"] = Rounded(summary.output_tokens_per_s);
  out["requests_per_second"] = Rounded(summary.requests_per_s);
  out["ttft_ms"] = DistributionJson(summary.first_token);
  out["itl_ms"] = DistributionJson(summary.inter_token);
  out["e2e_ms"] = DistributionJson(summary.whole);
  out["goodput"] = {{"ttft_limit_ms", absl::ToDoubleMilliseconds(setup.limits.first_token)},
                    {"itl_limit_ms", absl::ToDoubleMilliseconds(setup.limits.inter_token)},
                    {"requests_per_second", Rounded(summary.good_requests_per_s)},
                    {"share", Rounded(GoodShare(summary))}};
  return out;
}

std::string TrafficTable(const TrafficSetup& setup, const TrafficSummary& summary) {
  std::string out = absl::StrCat("bench ", setup.bench, "  ", setup.target, "\n");
  for (const auto& [name, value] : setup.settings.items()) {
    absl::StrAppend(&out, "  ", name, " ", value.dump(), "\n");
  }
  absl::StrAppendFormat(&out, "\n  %d requests done, %d failed, in %.2f s\n",
                        summary.requests - summary.failed, summary.failed, summary.seconds);
  AppendErrors(out, summary);
  absl::StrAppendFormat(&out, "  %d prompt tokens, %d output tokens\n", summary.prompt_tokens,
                        summary.output_tokens);
  absl::StrAppendFormat(&out, "  %.1f output tokens/s, %.2f requests/s\n",
                        summary.output_tokens_per_s, summary.requests_per_s);
  if (setup.goodput) {
    absl::StrAppendFormat(&out,
                          "  %.2f good requests/s (%.1f %%): first token within %.0f ms, "
                          "%.0f ms a token\n",
                          summary.good_requests_per_s, 100 * GoodShare(summary),
                          absl::ToDoubleMilliseconds(setup.limits.first_token),
                          absl::ToDoubleMilliseconds(setup.limits.inter_token));
  }
  absl::StrAppendFormat(&out, "\n  %-18s %9s %9s %9s %9s %9s\n", "milliseconds", "mean", "p50",
                        "p90", "p99", "max");
  AppendRow(out, "first token", summary.first_token);
  AppendRow(out, "between tokens", summary.inter_token);
  AppendRow(out, "whole request", summary.whole);
  AppendHistogram(out, "first token, ms", summary.first_token);
  AppendHistogram(out, "between tokens, ms", summary.inter_token);
  AppendTimeline(out, summary);
  return out;
}

}  // namespace tessera::cli
