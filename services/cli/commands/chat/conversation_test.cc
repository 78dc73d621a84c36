#include "services/cli/commands/chat/conversation.h"

#include "gtest/gtest.h"
#include "services/cli/commands/chat/answer.h"

namespace tessera::cli {
namespace {

std::string Roles(const Conversation& conversation) {
  std::string roles;
  const parser::v1::ChatStreamRequest request = conversation.Request();
  for (const auto& message : request.options().chat().messages()) {
    roles += message.role() + " ";
  }
  return roles;
}

TEST(ReadTools, KeepsTheOrderOfKeys) {
  const auto tools =
      ReadTools(R"([{"type": "function", "function": {"name": "f", "b": 1.0, "a": 2}}])");
  ASSERT_TRUE(tools.ok()) << tools.status();
  ASSERT_EQ(tools->size(), 1u);
  EXPECT_EQ((*tools)[0].definition_json(),
            R"({"type":"function","function":{"name":"f","b":1.0,"a":2}})");
}

TEST(ReadTools, RefusesWhatIsNoListOfTools) {
  for (const char* json : {"", "{}", "[1]", "[{}]", R"([{"function": {"name": ""}}])",
                           R"([{"function": 3}])", R"([{"name": "f"}, {"function": {}}])"}) {
    EXPECT_EQ(ReadTools(json).status().code(), absl::StatusCode::kInvalidArgument) << json;
  }
}

TEST(Conversation, SendsSettingsOnlyWhenTheyAreGiven) {
  const auto silent = Conversation({}).Request().options();
  EXPECT_EQ(silent.chat().chat_template_kwargs_json(), "");
  EXPECT_FALSE(silent.sampling().has_max_tokens());
  EXPECT_FALSE(silent.sampling().has_temperature());
  EXPECT_FALSE(silent.sampling().has_seed());
  EXPECT_EQ(silent.chat().messages_size(), 0);

  ChatSettings settings;
  settings.thinking = false;
  settings.low_effort = true;
  settings.system = "Be kind.";
  settings.tools.emplace_back().set_definition_json("{}");
  settings.max_tokens = 5;
  settings.temperature = 0.0f;
  settings.seed = 0;
  const auto options = Conversation(settings).Request().options();
  EXPECT_EQ(options.chat().chat_template_kwargs_json(),
            R"({"enable_thinking":false,"low_effort":true})");
  EXPECT_EQ(options.sampling().max_tokens(), 5u);
  EXPECT_TRUE(options.sampling().has_temperature());  // zero is not absent
  EXPECT_TRUE(options.sampling().has_seed());
  EXPECT_EQ(options.chat().tools_size(), 1);
  ASSERT_EQ(options.chat().messages_size(), 1);
  EXPECT_EQ(options.chat().messages(0).text(), "Be kind.");
}

TEST(Conversation, KeepsReasoningAndCallsInTheHistory) {
  parser::v1::ChatDelta begin;
  begin.set_reasoning("Roll");
  parser::v1::ChatDelta call;
  call.set_reasoning(" it.");
  call.add_tool_calls()->set_id("call_7");
  call.mutable_tool_calls(0)->set_name("roll_dice");
  parser::v1::ChatDelta end;
  end.add_tool_calls()->set_arguments_fragment("{\"faces\": 20}");
  end.mutable_end()->set_finish_reason(parser::v1::FINISH_REASON_TOOL_CALLS);
  Answer answer;
  for (const auto& delta : {begin, call, end}) answer.Add(delta);
  EXPECT_EQ(answer.finish_reason(), parser::v1::FINISH_REASON_TOOL_CALLS);

  Conversation conversation({});
  conversation.AddUser("Roll a die");
  conversation.AddAnswer(answer.message());
  conversation.AddToolResult(answer.message().tool_calls(0), "17");
  const auto chat = conversation.Request().options().chat();
  ASSERT_EQ(chat.messages_size(), 3);
  EXPECT_EQ(chat.messages(1).role(), "assistant");
  EXPECT_EQ(chat.messages(1).reasoning(), "Roll it.");
  EXPECT_FALSE(chat.messages(1).has_text());  // null, not empty
  EXPECT_EQ(chat.messages(1).tool_calls(0).arguments_json(), "{\"faces\": 20}");
  EXPECT_EQ(chat.messages(2).role(), "tool");
  EXPECT_EQ(chat.messages(2).tool_call_id(), "call_7");
  EXPECT_EQ(chat.messages(2).text(), "17");
}

TEST(Conversation, TakesBackTheLastQuestionAndWhatFollowedIt) {
  ChatSettings settings;
  settings.system = "s";
  Conversation conversation(settings);
  conversation.AddUser("1");
  conversation.AddAnswer(Answer().message());
  conversation.AddUser("2");
  conversation.AddAnswer(Answer().message());
  conversation.AddToolResult({}, "r");
  conversation.TakeBack();
  EXPECT_EQ(Roles(conversation), "system user assistant ");
  conversation.TakeBack();  // nothing new: nothing happens
  EXPECT_EQ(Roles(conversation), "system user assistant ");
  conversation.Reset();
  EXPECT_EQ(Roles(conversation), "system ");
  conversation.TakeBack();
  EXPECT_EQ(Roles(conversation), "system ");
}

TEST(Conversation, RefusesTextThatIsNotUtf8) {
  Conversation conversation({});
  conversation.AddUser(
      "fa\xE7"
      "ade");
  const absl::Status status = conversation.CheckText();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(std::string(status.message()).find("user is not UTF-8 at byte 2"), std::string::npos);
  conversation.TakeBack();
  EXPECT_TRUE(conversation.CheckText().ok());
}

}  // namespace
}  // namespace tessera::cli
