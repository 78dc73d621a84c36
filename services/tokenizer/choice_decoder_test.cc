#include "services/tokenizer/choice_decoder.h"

#include <random>
#include <string>

#include "gtest/gtest.h"
#include "services/tokenizer/demo_text_model.h"

namespace tessera::services {
namespace {

using tessera::tokenizer::AddedTokens;
using tessera::tokenizer::Tokenizer;

const Tokenizer& Demo() { return *DemoTextModel()->tokenizer; }

std::vector<uint32_t> Ids(std::string_view text) { return *Demo().Encode(text); }

engine::v1::GenerateDelta Delta(const std::vector<uint32_t>& ids) {
  engine::v1::GenerateDelta delta;
  for (const uint32_t id : ids) delta.add_tokens()->set_id(id);
  return delta;
}

void AddEnd(engine::v1::GenerateDelta& delta, engine::v1::FinishReason reason) {
  delta.mutable_end()->set_reason(reason);
}

bool IsUtf8(const std::string& text) {
  // protobuf's own check would do, but it only warns; the tokenizer refuses broken text by name.
  return Demo().Encode(text, {.added_tokens = AddedTokens::kAllAsText}).ok();
}

struct Result {
  std::string text;
  std::vector<uint32_t> ids;
  tokenizer::v1::ChoiceEnd end;
};

// Feeds the ids in pieces of random size and checks what must hold for every single delta.
Result Feed(const DecodeOptions& options, const std::vector<uint32_t>& ids, std::mt19937& random,
            engine::v1::FinishReason reason = engine::v1::FINISH_REASON_LENGTH) {
  ChoiceDecoder choice = *ChoiceDecoder::Create(Demo(), 3, options);
  Result result;
  const auto take = [&] {
    const tokenizer::v1::GenerateDelta delta = choice.TakeDelta();
    EXPECT_EQ(delta.choice_index(), 3u);
    EXPECT_TRUE(IsUtf8(delta.text())) << delta.text();
    size_t owned = 0;
    for (const auto& token : delta.tokens()) {
      owned += token.text_bytes();
      result.ids.push_back(token.id());
    }
    if (delta.has_end()) {
      EXPECT_LE(owned, delta.text().size());
    } else {
      EXPECT_EQ(owned, delta.text().size());
    }
    result.text += delta.text();
  };
  size_t next = 0;
  while (!choice.ended()) {
    const size_t size = std::min<size_t>(random() % 4, ids.size() - next);
    engine::v1::GenerateDelta delta = Delta({ids.begin() + next, ids.begin() + next + size});
    next += size;
    if (next == ids.size() && (size == 0 || random() % 2 == 0)) AddEnd(delta, reason);
    if (choice.Append(delta)) take();
  }
  result.end = choice.end();
  EXPECT_EQ(choice.completion_tokens(), result.ids.size());
  EXPECT_EQ(result.end.completion_tokens(), result.ids.size());
  return result;
}

TEST(ChoiceDecoder, AnyChunkingGivesTheSameText) {
  std::mt19937 random(20);
  const std::string text =
      "Tide at Bodø 03:12 — 你好，世界 🌊 <think>no</think>\n\n  code {a: [1]} END tail ✓";
  const std::vector<uint32_t> ids = Ids(text);
  const struct {
    std::vector<std::string> stop;
    std::string want;
  } cases[] = {
      {{}, text},
      {{"never there"}, text},
      {{"END"}, text.substr(0, text.find("END"))},
      {{"世界 🌊 <think>", "no such"}, text.substr(0, text.find("世界"))},
      {{"tail ✓"}, text.substr(0, text.find("tail"))},
      {{"a: [2", "[1]}"}, text.substr(0, text.find("[1]}"))},
  };
  for (const auto& test : cases) {
    for (int round = 0; round < 40; ++round) {
      const Result result = Feed({.stop = test.stop}, ids, random);
      EXPECT_EQ(result.text, test.want);
      if (test.want != text) {
        EXPECT_EQ(result.end.reason(), engine::v1::FINISH_REASON_STOP);
        EXPECT_TRUE(result.end.has_stop_string());
      } else {
        EXPECT_EQ(result.ids, ids);
        EXPECT_EQ(result.end.reason(), engine::v1::FINISH_REASON_LENGTH);
      }
    }
  }
}

TEST(ChoiceDecoder, RandomIdsGiveWhatDecodingThemAllAtOnceGives) {
  std::mt19937 random(21);
  for (int round = 0; round < 200; ++round) {
    std::vector<uint32_t> ids(random() % 60);
    for (uint32_t& id : ids) id = random() % 4200;  // a few beyond the vocabulary
    EXPECT_EQ(Feed({}, ids, random).text, Demo().Decode(ids, /*skip_special_tokens=*/false));
    EXPECT_EQ(Feed({.decoder = {.skip_special_tokens = true}}, ids, random).text,
              Demo().Decode(ids, /*skip_special_tokens=*/true));
  }
}

TEST(ChoiceDecoder, NothingIsTakenAfterAStopString) {
  ChoiceDecoder choice = *ChoiceDecoder::Create(Demo(), 0, {.stop = {"lo"}});
  std::vector<uint32_t> ids = Ids("hello");
  const size_t hello_tokens = ids.size();
  for (const uint32_t id : Ids(" world")) ids.push_back(id);
  engine::v1::GenerateDelta delta = Delta(ids);
  EXPECT_TRUE(choice.Append(delta));
  EXPECT_TRUE(choice.ended());
  EXPECT_TRUE(choice.stopped_early());
  EXPECT_LE(choice.completion_tokens(), hello_tokens);
  EXPECT_EQ(choice.TakeDelta().text(), "hel");
  EXPECT_EQ(choice.end().stop_string(), "lo");
}

TEST(ChoiceDecoder, TheStopStringCanBeKept) {
  std::mt19937 random(22);
  EXPECT_EQ(Feed({.stop = {"lo w"}, .include_stop_string = true}, Ids("hello world"), random).text,
            "hello w");
}

TEST(ChoiceDecoder, ChatKeepsMarkersAndDropsTheEndOfTurnOnly) {
  std::mt19937 random(23);
  const Result result =
      Feed({.decoder = {.drop_ids = {2, 11}}}, Ids("a</think><tool_call>b<|im_end|>"), random,
           engine::v1::FINISH_REASON_STOP);
  EXPECT_EQ(result.text, "a</think><tool_call>b");
  EXPECT_EQ(result.ids.back(), 11u);  // counted, though it gives no text
}

TEST(ChoiceDecoder, AnUnfinishedCharacterComesOutAtTheEndAsUnownedText) {
  // The first byte of a multi-byte character, alone.
  std::vector<uint32_t> ids = Ids("\xf0\x9f\xa6\x80");
  ASSERT_GT(ids.size(), 1u);
  ids.pop_back();
  ChoiceDecoder choice = *ChoiceDecoder::Create(Demo(), 0, {});
  engine::v1::GenerateDelta delta = Delta(ids);
  EXPECT_FALSE(choice.Append(delta));
  engine::v1::GenerateDelta end;
  AddEnd(end, engine::v1::FINISH_REASON_LENGTH);
  EXPECT_TRUE(choice.Append(end));
  const tokenizer::v1::GenerateDelta out = choice.TakeDelta();
  EXPECT_EQ(out.text(), "\xef\xbf\xbd");
  for (const auto& token : out.tokens()) EXPECT_EQ(token.text_bytes(), 0u);
}

TEST(ChoiceDecoder, LogprobsTravelWithTheirTokens) {
  ChoiceDecoder choice = *ChoiceDecoder::Create(Demo(), 0, {.want_logprobs = true});
  engine::v1::GenerateDelta delta = Delta({13});
  delta.mutable_tokens(0)->set_logprob(-0.5);
  auto& top = *delta.mutable_tokens(0)->add_top_logprobs();
  top.set_id(12);
  top.set_logprob(-1.5);
  EXPECT_TRUE(choice.Append(delta));
  const tokenizer::v1::GenerateDelta out = choice.TakeDelta();
  EXPECT_EQ(out.tokens(0).token(), "</think>");
  EXPECT_FLOAT_EQ(out.tokens(0).logprob(), -0.5);
  EXPECT_EQ(out.tokens(0).top_logprobs(0).token(), "<think>");
  EXPECT_EQ(out.tokens(0).text_bytes(), 8u);
}

TEST(ChoiceDecoder, AStreamOfSilentTokensIsNotSilentForEver) {
  ChoiceDecoder choice =
      *ChoiceDecoder::Create(Demo(), 0, {.decoder = {.skip_special_tokens = true}});
  int silent = 0;
  while (true) {
    engine::v1::GenerateDelta delta = Delta({12});
    if (choice.Append(delta)) break;
    ASSERT_LT(++silent, kSilentTokensMax);
  }
  EXPECT_EQ(choice.TakeDelta().tokens_size(), kSilentTokensMax);
}

tokenizer::v1::GenerateResponse TextOf(uint32_t choice, const std::string& text, bool owned) {
  tokenizer::v1::GenerateResponse response;
  response.mutable_delta()->set_choice_index(choice);
  response.mutable_delta()->set_text(text);
  if (owned) response.mutable_delta()->add_tokens()->set_text_bytes(text.size());
  return response;
}

TEST(MergeResponses, JoinsDeltasOfOneChoiceAndKeepsTheirAccount) {
  auto last = TextOf(1, "ab", true);
  auto next = TextOf(1, "c", true);
  next.mutable_delta()->mutable_end()->set_choice_index(1);
  ASSERT_TRUE(MergeResponses(last, next));
  EXPECT_EQ(last.delta().text(), "abc");
  EXPECT_EQ(last.delta().tokens_size(), 2);
  EXPECT_TRUE(last.delta().has_end());
}

TEST(MergeResponses, LeavesEverythingElseApart) {
  auto delta = TextOf(1, "ab", true);
  auto other_choice = TextOf(2, "c", true);
  EXPECT_FALSE(MergeResponses(delta, other_choice));
  auto echo = TextOf(1, "prompt", false);
  EXPECT_FALSE(MergeResponses(echo, delta));
  tokenizer::v1::GenerateResponse finished;
  finished.mutable_finished();
  EXPECT_FALSE(MergeResponses(delta, finished));
  auto ended = TextOf(1, "ab", true);
  ended.mutable_delta()->mutable_end();
  EXPECT_FALSE(MergeResponses(ended, delta));
}

}  // namespace
}  // namespace tessera::services
