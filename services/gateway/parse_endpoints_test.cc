// POST /parse/reasoning and /parse/function_call over a scripted parser.

#include "services/gateway/parse_endpoints.h"

#include <memory>
#include <string>

#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "services/clients/fake_parser_client.h"
#include "services/common/clock.h"
#include "services/common/field_error.h"
#include "services/gateway/gateway.h"

namespace tessera::gateway {
namespace {

using Json = nlohmann::json;

// Keeps the one answer.
class Exchange final : public HttpExchange {
 public:
  Exchange(std::string path, std::string body, std::string method) {
    request_.method = std::move(method);
    request_.path = std::move(path);
    request_.content_type = "application/json";
    request_.body = std::move(body);
  }
  const HttpRequest& request() const override { return request_; }
  void SetEvents(Events) override {}
  void Respond(HttpResponse response) override { answer = std::move(response); }
  void BeginStream(const HttpHeaders&) override { ADD_FAILURE() << "a stream"; }
  bool Write(std::string_view) override { return true; }
  void End() override {}

  HttpResponse answer{.status = 0};

 private:
  HttpRequest request_;
};

class ParseEndpointsTest : public testing::Test {
 protected:
  HttpResponse Post(const std::string& path, const std::string& body, const char* method = "POST") {
    Gateway gateway({.parser = parser_,
                     .log = log_,
                     .clock = services::RealClock(),
                     .ids = ids_,
                     .registry = registry_});
    const auto exchange = std::make_shared<Exchange>(path, body, method);
    gateway.Handle(exchange);
    return exchange->answer;
  }

  services::FakeParserClient parser_;
  services::Logger log_{{.service = "gateway", .sink = [](std::string_view) {}}};
  services::RequestIds ids_{1};
  prometheus::Registry registry_;
};

TEST_F(ParseEndpointsTest, ReasoningIsSplitOff) {
  parser::v1::ParseReasoningRequest asked;
  parser_.on_parse_reasoning = [&](const auto& request) {
    asked = request;
    parser::v1::ParseReasoningResponse response;
    response.set_reasoning("Hm \"3\".");
    response.set_content("Three.");
    return response;
  };
  const HttpResponse answer =
      Post("/parse/reasoning", R"({"text": "Hm</think>Three.", "enable_thinking": false})");
  EXPECT_EQ(answer.status, 200) << answer.body;
  EXPECT_EQ(Json::parse(answer.body), Json({{"content", "Three."},
                                            {"reasoning", "Hm \"3\"."},
                                            {"reasoning_content", "Hm \"3\"."}}));
  EXPECT_EQ(asked.text(), "Hm</think>Three.");
  EXPECT_EQ(asked.format(), "");
  EXPECT_TRUE(asked.has_enable_thinking());
  EXPECT_FALSE(asked.enable_thinking());
}

TEST_F(ParseEndpointsTest, WhatIsNotThereIsNull) {
  const Json answer = Json::parse(Post("/parse/reasoning", R"({"text": ""})").body);
  EXPECT_TRUE(answer["content"].is_null());
  EXPECT_TRUE(answer["reasoning"].is_null());
}

TEST_F(ParseEndpointsTest, CallsAreAsInAChatAnswerAndToolsGoDownAsWritten) {
  constexpr char kTool[] = R"({"type":"function","function":{"name":"f","x":1.0}})";
  parser::v1::ParseToolCallsRequest asked;
  parser_.on_parse_tool_calls = [&](const auto& request) {
    asked = request;
    parser::v1::ParseToolCallsResponse response;
    parser::v1::ToolCall* const call = response.add_tool_calls();
    call->set_id("call_1");
    call->set_name("f");
    call->set_arguments_json(R"({"a": 1})");
    return response;
  };
  const HttpResponse answer =
      Post("/parse/function_call",
           std::string(R"({"text": "raw", "format": "hermes", "tools": [)") + kTool + "]}");
  EXPECT_EQ(answer.status, 200) << answer.body;
  EXPECT_EQ(Json::parse(answer.body),
            Json::parse(R"({"content": null, "tool_calls": [{"id": "call_1", "type": "function",
                            "function": {"name": "f", "arguments": "{\"a\": 1}"}}]})"));
  EXPECT_EQ(asked.format(), "hermes");
  ASSERT_EQ(asked.tools_size(), 1);
  EXPECT_EQ(asked.tools(0).definition_json(), kTool);
}

TEST_F(ParseEndpointsTest, ABadFieldIsNamed) {
  const auto field = [&](const char* path, const char* body) {
    const HttpResponse answer = Post(path, body);
    EXPECT_EQ(answer.status, 400) << answer.body;
    const Json error = Json::parse(answer.body)["error"];
    return error["param"].is_string() ? error["param"].get<std::string>() : std::string();
  };
  EXPECT_EQ(field("/parse/reasoning", "{}"), "text");
  EXPECT_EQ(field("/parse/reasoning", R"({"text": 5})"), "text");
  EXPECT_EQ(field("/parse/reasoning", R"({"text": "", "enable_thinking": "no"})"),
            "enable_thinking");
  EXPECT_EQ(field("/parse/reasoning", "[]"), "");
  EXPECT_EQ(field("/parse/function_call", R"({"text": "x"})"), "tools");
  EXPECT_EQ(field("/parse/function_call", R"({"text": "x", "tools": [{}]})"),
            "tools[0].function.name");
  EXPECT_EQ(field("/parse/function_call", R"({"tools": [{"name": "f"}]})"), "text");
}

TEST_F(ParseEndpointsTest, AnErrorBelowAndAWrongMethodHaveTheirStatus) {
  parser_.on_parse_reasoning =
      [](const auto&) -> absl::StatusOr<parser::v1::ParseReasoningResponse> {
    return services::InvalidField("reasoning_format", "\"x\" is no known format");
  };
  const HttpResponse answer = Post("/parse/reasoning", R"({"text": "", "format": "x"})");
  EXPECT_EQ(answer.status, 400) << answer.body;
  EXPECT_NE(answer.body.find("no known format"), std::string::npos);
  parser_.on_parse_tool_calls =
      [](const auto&) -> absl::StatusOr<parser::v1::ParseToolCallsResponse> {
    return absl::UnavailableError("gone");
  };
  EXPECT_EQ(Post("/parse/function_call", R"({"text": "", "tools": [{"name": "f"}]})").status, 503);
  EXPECT_EQ(Post("/parse/reasoning", "", "GET").status, 405);
}

}  // namespace
}  // namespace tessera::gateway
