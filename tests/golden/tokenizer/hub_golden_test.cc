// Ten tokenizers of real models against the Hugging Face library: ids in four modes, decoded text,
// text of random ids, and text as a stream.
#include "gtest/gtest.h"
#include "tests/golden/tokenizer/golden_cases.h"
#include "tokenizer/bpe/tokenizer.h"
#include "tokenizer/detokenizer/stream_decoder.h"

namespace tessera::tokenizer {
namespace {

class HubGolden : public testing::TestWithParam<const char*> {};

INSTANTIATE_TEST_SUITE_P(Tokenizers, HubGolden,
                         testing::Values("nemotron3", "llama3", "llama3_1", "gptoss", "gpt4o"),
                         [](const auto& info) { return std::string(info.param); });

std::vector<TokenId> Encode(const Tokenizer& tokenizer, const std::string& text,
                            const EncodeOptions& options) {
  const auto ids = tokenizer.Encode(text, options);
  EXPECT_TRUE(ids.ok()) << ids.status();
  return ids.ok() ? *ids : std::vector<TokenId>();
}

TEST_P(HubGolden, IdsAndTextsAreTheReferences) {
  const std::string name = GetParam();
  const Tokenizer* const tokenizer = HubTokenizer(name);
  ASSERT_NE(tokenizer, nullptr);
  const auto texts = ReadTexts();
  Comparison comparison(name);
  for (const Json& line : ReadCases("hf_" + name + ".jsonl")) {
    const std::string id = line["id"];
    const std::string& text = texts.at(id);
    const auto compare = [&](const char* field, const EncodeOptions& options) {
      comparison.Ids(id + " " + field, Encode(*tokenizer, text, options),
                     line[field].get<std::vector<TokenId>>());
    };
    compare("ids", {});
    compare("ids_sp", {.add_special_tokens = true});
    compare("ids_nospecial", {.added_tokens = AddedTokens::kSpecialAsText});
    compare("ids_noadded", {.added_tokens = AddedTokens::kAllAsText});
    const auto with_special = line["ids_sp"].get<std::vector<TokenId>>();
    comparison.Text(id + " dec", tokenizer->Decode(with_special, false), line["dec"]);
    comparison.Text(id + " dec_skip", tokenizer->Decode(with_special, true), line["dec_skip"]);
  }
}

TEST_P(HubGolden, RandomIdsDecodeAsTheReferenceDoes) {
  const std::string name = GetParam();
  const Tokenizer* const tokenizer = HubTokenizer(name);
  ASSERT_NE(tokenizer, nullptr);
  Comparison comparison(name);
  int index = 0;
  for (const Json& line : ReadCases("decode_random.jsonl")) {
    if (line["tok"] != name) continue;
    const auto ids = line["ids"].get<std::vector<TokenId>>();
    const std::string where = "list " + std::to_string(index++);
    comparison.Text(where, tokenizer->Decode(ids, false), line["dec"]);
    comparison.Text(where + " skip", tokenizer->Decode(ids, true), line["dec_skip"]);
  }
}

TEST_P(HubGolden, AStreamGivesEachTextAsSoonAsItIsCertain) {
  const std::string name = GetParam();
  const Tokenizer* const tokenizer = HubTokenizer(name);
  ASSERT_NE(tokenizer, nullptr);
  Comparison comparison(name);
  for (const Json& line : ReadCases("stream.jsonl")) {
    if (line["tok"] != name) continue;
    const std::string where = line["src"];
    StreamDecoder decoder(tokenizer->token_table(), {.skip_special_tokens = line["skip_special"]});
    std::string whole;
    size_t at = 0;
    for (const TokenId id : line["ids"].get<std::vector<TokenId>>()) {
      const std::string piece = decoder.Append(id);
      if (line.contains("asap")) {
        comparison.Text(where + " token " + std::to_string(at), piece, line["asap"][at]);
      }
      ++at;
      whole += piece;
    }
    const std::string rest = decoder.Finish();
    if (line.contains("asap_flush")) comparison.Text(where + " flush", rest, line["asap_flush"]);
    comparison.Text(where, whole + rest, line["full"]);
  }
}

}  // namespace
}  // namespace tessera::tokenizer
