#include "services/cli/commands/bench/traffic_report.h"

#include <sstream>

#include "gtest/gtest.h"

namespace tessera::cli {
namespace {

using Json = nlohmann::ordered_json;

TrafficSummary Measured() {
  std::vector<RequestRecord> records;
  for (int i = 1; i <= 20; ++i) {
    const absl::Duration sent = absl::Milliseconds(10 * i);
    RequestRecord record = {.sent = sent, .prompt_tokens = 3, .output_tokens = 4};
    for (int k = 0; k < 4; ++k)
      record.arrivals.push_back({sent + absl::Milliseconds(i + i * k), 1});
    record.ended = record.arrivals.back().at;
    records.push_back(record);
  }
  records.push_back({.error = "HTTP 429", .message = "the queue is full"});
  return Summarize(records, {});
}

TrafficSetup SomeSetup() {
  return {.bench = "serve",
          .target = "http://h:1/v1/completions",
          .settings = {{"concurrency", 8}, {"max_tokens", 4}}};
}

TEST(TrafficJson, HoldsSetupRatesAndPercentiles) {
  const Json out = TrafficJson(SomeSetup(), Measured());
  EXPECT_EQ(out["bench"], "serve");
  EXPECT_EQ(out["concurrency"], 8);
  EXPECT_EQ(out["requests_done"], 20);
  EXPECT_EQ(out["requests_failed"], 1);
  EXPECT_EQ(out["errors"], Json({{"HTTP 429", 1}}));
  EXPECT_EQ(out["first_error"], "the queue is full");
  EXPECT_EQ(out["prompt_tokens"], 60);
  EXPECT_EQ(out["output_tokens"], 80);
  EXPECT_EQ(out["ttft_ms"],
            Json({{"mean", 10.5}, {"p50", 10.0}, {"p90", 18.0}, {"p99", 20.0}, {"max", 20.0}}));
  EXPECT_EQ(out["itl_ms"]["p50"], 10.0);
  EXPECT_EQ(out["goodput"]["share"], 0.952);
  EXPECT_DOUBLE_EQ(out["output_tokens_per_second"], std::round(80 / 0.28 * 1000) / 1000);
}

TEST(TrafficJson, ARunWithoutFailuresHasNoErrors) {
  const Json out = TrafficJson(SomeSetup(), Summarize({}, {}));
  EXPECT_FALSE(out.contains("errors"));
  EXPECT_EQ(out["ttft_ms"]["p99"], 0.0);
}

TEST(TrafficTable, ShowsRatesErrorsAndBars) {
  TrafficSetup setup = SomeSetup();
  EXPECT_EQ(TrafficTable(setup, Measured()).find("good requests/s"), std::string::npos);
  setup.goodput = true;
  const std::string table = TrafficTable(setup, Measured());
  for (const char* part :
       {"bench serve  http://h:1/v1/completions\n", "  concurrency 8\n",
        "20 requests done, 1 failed", "failed: 1 x HTTP 429", "the first said: the queue is full",
        "285.7 output tokens/s",
        "good requests/s (95.2 %): first token within 1000 ms, 100 ms a token",
        "  first token            10.50     10.00     18.00     20.00     20.00\n",
        "\nfirst token, ms\n      1.00 ..     2.90        2 "
        "########################################\n",
        "\noutput tokens/s over time (seconds)\n      0.00"}) {
    EXPECT_NE(table.find(part), std::string::npos) << part << "\n" << table;
  }
}

TEST(TrafficTable, LinesFitATerminal) {
  std::istringstream table(TrafficTable(SomeSetup(), Measured()));
  for (std::string line; std::getline(table, line);) EXPECT_LE(line.size(), 80u) << line;
}

TEST(TrafficTable, NothingIsNoTrouble) {
  EXPECT_NE(TrafficTable(SomeSetup(), Summarize({}, {})).find("0 requests done"),
            std::string::npos);
}

}  // namespace
}  // namespace tessera::cli
