#include "services/tokenizer/choice_decoder.h"

#include <utility>

namespace tessera::services {
namespace {

uint64_t CodePoints(std::string_view text) {
  uint64_t count = 0;
  for (const char c : text) count += (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  return count;
}

}  // namespace

absl::StatusOr<ChoiceDecoder> ChoiceDecoder::Create(const tessera::tokenizer::Tokenizer& tokenizer,
                                                    uint32_t index, const DecodeOptions& options) {
  absl::StatusOr<tessera::tokenizer::StopMatcher> matcher =
      tessera::tokenizer::StopMatcher::Create(options.stop, options.include_stop_string);
  if (!matcher.ok()) return matcher.status();
  return ChoiceDecoder(tokenizer, index, options, *std::move(matcher));
}

ChoiceDecoder::ChoiceDecoder(const tessera::tokenizer::Tokenizer& tokenizer, uint32_t index,
                             const DecodeOptions& options, tessera::tokenizer::StopMatcher matcher)
    : tokenizer_(&tokenizer),
      index_(index),
      want_logprobs_(options.want_logprobs),
      has_stop_strings_(!options.stop.empty()),
      decoder_(tokenizer.token_table(), options.decoder),
      matcher_(std::move(matcher)) {
  pending_.set_choice_index(index);
}

bool ChoiceDecoder::Append(engine::v1::GenerateDelta& delta) {
  for (engine::v1::GeneratedToken& token : *delta.mutable_tokens()) {
    if (ended()) return true;
    AppendToken(token);
  }
  if (!ended() && delta.has_end()) End(delta.end().reason(), &delta.end());
  return ended() || !pending_.text().empty() || pending_.tokens_size() >= kSilentTokensMax;
}

void ChoiceDecoder::AppendToken(engine::v1::GeneratedToken& token) {
  ++completion_tokens_;
  std::string& text = *pending_.mutable_text();
  const size_t size_before = text.size();
  if (has_stop_strings_) {
    decoded_.clear();
    decoder_.Append(token.id(), decoded_);
    text += matcher_.Append(decoded_);
  } else {
    decoder_.Append(token.id(), text);
  }
  tokenizer::v1::TextToken& out = *pending_.add_tokens();
  out.set_id(token.id());
  out.set_text_bytes(static_cast<uint32_t>(text.size() - size_before));
  if (want_logprobs_) {
    const std::string_view bytes = tokenizer_->TokenBytes(token.id());
    out.set_token(bytes.data(), bytes.size());
    if (token.has_logprob()) out.set_logprob(token.logprob());
    for (const engine::v1::TokenLogprob& other : token.top_logprobs()) {
      tokenizer::v1::TextLogprob& top = *out.add_top_logprobs();
      top.set_id(other.id());
      const std::string_view other_bytes = tokenizer_->TokenBytes(other.id());
      top.set_token(other_bytes.data(), other_bytes.size());
      top.set_logprob(other.logprob());
    }
  }
  if (matcher_.stopped()) {
    stopped_early_ = true;
    End(engine::v1::FINISH_REASON_STOP, nullptr);
  }
}

void ChoiceDecoder::End(engine::v1::FinishReason reason, const engine::v1::ChoiceEnd* from_engine) {
  if (!matcher_.stopped()) {
    // What was held back belongs to no new token. It may still complete a stop string.
    decoded_.clear();
    decoder_.Finish(decoded_);
    std::string& text = *pending_.mutable_text();
    text += matcher_.Append(decoded_);
    if (!matcher_.stopped()) text += matcher_.Finish();
  }
  end_.emplace();
  end_->set_choice_index(index_);
  end_->set_completion_tokens(completion_tokens_);
  if (matcher_.stopped()) {
    end_->set_reason(engine::v1::FINISH_REASON_STOP);
    end_->set_stop_string(matcher_.stop_string(*matcher_.matched()));
  } else {
    end_->set_reason(reason);
    if (from_engine != nullptr && from_engine->has_stop_token_id()) {
      end_->set_stop_token_id(from_engine->stop_token_id());
    }
  }
  *pending_.mutable_end() = *end_;
}

tokenizer::v1::GenerateDelta ChoiceDecoder::TakeDelta() {
  characters_ += CodePoints(pending_.text());
  tokenizer::v1::GenerateDelta delta = std::move(pending_);
  pending_.Clear();
  pending_.set_choice_index(index_);
  return delta;
}

bool MergeResponses(tokenizer::v1::GenerateResponse& last, tokenizer::v1::GenerateResponse& next) {
  if (!last.has_delta() || !next.has_delta()) return false;
  tokenizer::v1::GenerateDelta& into = *last.mutable_delta();
  tokenizer::v1::GenerateDelta& from = *next.mutable_delta();
  if (into.choice_index() != from.choice_index() || into.has_end()) return false;
  // Text that belongs to no token comes last only: an echoed prompt stays a message of its own.
  size_t owned = 0;
  for (const tokenizer::v1::TextToken& token : into.tokens()) owned += token.text_bytes();
  if (owned != into.text().size()) return false;
  into.mutable_text()->append(from.text());
  for (tokenizer::v1::TextToken& token : *from.mutable_tokens()) {
    *into.add_tokens() = std::move(token);
  }
  if (from.has_end()) *into.mutable_end() = std::move(*from.mutable_end());
  return true;
}

}  // namespace tessera::services
