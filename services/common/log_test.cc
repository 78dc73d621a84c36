#include "services/common/log.h"

#include <limits>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "services/common/manual_clock.h"

namespace tessera::services {
namespace {

struct Capture {
  ManualClock clock;
  std::vector<std::string> lines;
  Logger logger;

  explicit Capture(LogFormat format, LogLevel level = LogLevel::kInfo)
      : logger({.service = "tokenizer",
                .level = level,
                .format = format,
                .clock = &clock,
                .sink = [this](std::string_view line) { lines.emplace_back(line); }}) {}
};

TEST(Log, AJsonLineHasTheFixedKeysFirstThenTheFieldsInOrder) {
  Capture log(LogFormat::kJson);
  log.logger.Info("request done",
                  {{"request_id", "req-1"}, {"tokens", 12}, {"seconds", 0.5}, {"ok", true}});
  EXPECT_EQ(log.lines.at(0),
            R"({"ts":"2023-11-14T22:13:20.000Z","level":"info","service":"tokenizer",)"
            R"("msg":"request done","request_id":"req-1","tokens":12,"seconds":0.5,"ok":true})");
}

TEST(Log, ValuesCannotEndTheLineOrForgeAField) {
  Capture log(LogFormat::kJson);
  const std::string evil = "a\",\"level\":\"error\n\x01\xff\xc3(\\";
  log.logger.Info(evil, {{"request_id", evil}, {"rate", std::numeric_limits<double>::quiet_NaN()}});
  EXPECT_EQ(log.lines.at(0).find('\n'), std::string::npos);
  const auto parsed = nlohmann::json::parse(log.lines.at(0));
  EXPECT_EQ(parsed["level"], "info");
  EXPECT_EQ(parsed["request_id"], "a\",\"level\":\"error\n\x01\xef\xbf\xbd\xef\xbf\xbd(\\");
  EXPECT_TRUE(parsed["rate"].is_null());
}

TEST(Log, LongValuesAreCut) {
  Capture log(LogFormat::kJson);
  log.logger.Info("x", {{"v", std::string(100'000, 'v')}});
  EXPECT_LT(log.lines.at(0).size(), kLogValueBytesMax + 200);
}

TEST(Log, TextIsOneLineToo) {
  Capture log(LogFormat::kText);
  log.logger.Warning("slow\nreader", {{"request_id", "r 1"}, {"bytes", 3u}});
  EXPECT_EQ(log.lines.at(0),
            R"(2023-11-14T22:13:20.000Z warning tokenizer slow\nreader request_id="r 1" bytes=3)");
}

TEST(Log, LevelsBelowTheOptionAreDropped) {
  Capture log(LogFormat::kJson, LogLevel::kWarning);
  log.logger.Debug("a");
  log.logger.Info("b");
  log.logger.Warning("c");
  log.logger.Error("d");
  EXPECT_EQ(log.lines.size(), 2u);
  EXPECT_FALSE(log.logger.Enabled(LogLevel::kInfo));
}

TEST(Log, FlagsAreReadOrRefusedWithTheChoices) {
  EXPECT_EQ(*ParseLogLevel("warning"), LogLevel::kWarning);
  EXPECT_EQ(*ParseLogFormat("text"), LogFormat::kText);
  EXPECT_NE(ParseLogLevel("loud").status().message().find("debug, info"), std::string::npos);
  EXPECT_FALSE(ParseLogFormat("xml").ok());
}

}  // namespace
}  // namespace tessera::services
