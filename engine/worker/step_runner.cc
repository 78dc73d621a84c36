#include "engine/worker/step_runner.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace tessera::engine {
namespace {

absl::Status Broken(SequenceId sequence, const std::string& rule) {
  return absl::InvalidArgumentError(
      absl::StrCat("step plan: sequence ", sequence.value, " ", rule));
}

bool HasPenalty(const SamplingParams& sampling) {
  return sampling.repetition_penalty != 1.0f || sampling.presence_penalty != 0.0f ||
         sampling.frequency_penalty != 0.0f;
}

}  // namespace

StepRunner::StepRunner(Model& model, const Clock& clock)
    : model_(model),
      clock_(clock),
      slots_taken_(model.limits().slots),
      blocks_taken_(model.limits().blocks),
      worked_slots_(model.limits().slots),
      logits_(size_t{model.limits().logit_rows_max} * model.shape().vocab) {
  chunks_.reserve(model.limits().slots);
  held_of_chunk_.reserve(model.limits().slots);
  last_offsets_.reserve(model.limits().slots);
}

absl::StatusOr<StepResult> StepRunner::Run(const StepPlan& plan) {
  const uint64_t begin_us = clock_.NowUs();
  // A worker that replaces a lost one begins where the plans are.
  if (step_ != 0 && plan.step != step_ + 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("step plan: is number ", plan.step, " after ", step_));
  }
  step_ = plan.step;
  for (SequenceId id : plan.ended) {
    if (absl::Status s = Forget(id); !s.ok()) return s;
  }
  for (const SequenceStart& start : plan.started) {
    if (absl::Status s = Take(start); !s.ok()) return s;
  }
  chunks_.clear();
  held_of_chunk_.clear();
  last_offsets_.clear();
  worked_slots_.assign(worked_slots_.size(), false);
  uint64_t tokens = 0;
  uint32_t rows = 0;
  for (const SequenceWork& work : plan.work) {
    if (absl::Status s = Prepare(work); !s.ok()) return s;
    tokens += chunks_.back().tokens.size();
    rows += work.sample ? 1 : 0;
  }
  if (tokens > model_.limits().step_tokens_max || rows > model_.limits().logit_rows_max) {
    return absl::InvalidArgumentError(
        absl::StrCat("step plan: has ", tokens, " tokens and ", rows, " samples; the limits are ",
                     model_.limits().step_tokens_max, " and ", model_.limits().logit_rows_max));
  }
  StepResult result = {.step = plan.step};
  if (!chunks_.empty()) {
    const std::span<float> logits(logits_.data(), size_t{rows} * model_.shape().vocab);
    if (absl::Status s = model_.Forward(chunks_, logits); !s.ok()) return s;
  }
  size_t row = 0;
  result.results.reserve(rows);
  for (size_t i = 0; i < plan.work.size(); ++i) {
    Held& held = *held_of_chunk_[i];
    held.fresh = false;
    held.computed += static_cast<uint32_t>(chunks_[i].tokens.size());
    if (held.keeps_history) {
      for (size_t t = 0; t < chunks_[i].tokens.size(); ++t) {
        const TokenId token = chunks_[i].tokens[t];
        if (chunks_[i].position + t < held.prompt_tokens) {
          held.history.AddPrompt(token);
        } else {
          held.history.AddOutput(token);
        }
      }
    }
    if (!plan.work[i].sample) continue;
    const std::span<const float> logits(logits_.data() + row * model_.shape().vocab,
                                        model_.shape().vocab);
    result.results.push_back(Sample(plan.work[i], held, logits));
    ++row;
  }
  result.device_us = clock_.NowUs() - begin_us;
  return result;
}

absl::Status StepRunner::Forget(SequenceId id) {
  const auto it = sequences_.find(id.value);
  if (it == sequences_.end()) return Broken(id, "ends but never started");
  slots_taken_[it->second->slot.value] = false;
  for (BlockId block : it->second->block_table) blocks_taken_[block.value] = false;
  sequences_.erase(it);
  return absl::OkStatus();
}

absl::Status StepRunner::Take(const SequenceStart& start) {
  if (start.slot.value >= slots_taken_.size()) {
    return Broken(start.sequence,
                  absl::StrCat("starts in slot ", start.slot.value, " of ", slots_taken_.size()));
  }
  if (slots_taken_[start.slot.value]) return Broken(start.sequence, "starts in a slot in use");
  if (sequences_.contains(start.sequence.value)) return Broken(start.sequence, "starts twice");
  for (const auto& [token, bias] : start.sampling.logit_bias) {
    if (token.value >= model_.shape().vocab) return Broken(start.sequence, "biases no token");
  }
  slots_taken_[start.slot.value] = true;
  auto held = std::make_unique<Held>();
  held->slot = start.slot;
  held->prompt_tokens = start.prompt_tokens;
  held->sampling = start.sampling;
  held->keeps_history = HasPenalty(start.sampling);
  sequences_.emplace(start.sequence.value, std::move(held));
  return absl::OkStatus();
}

absl::Status StepRunner::CheckTokens(const SequenceWork& work, const Held& held) const {
  if (worked_slots_[held.slot.value]) return Broken(work.sequence, "works twice in one step");
  if (work.position != held.computed) {
    return Broken(work.sequence, absl::StrCat("works at position ", work.position, " after ",
                                              held.computed, " tokens"));
  }
  if (work.tokens.empty() && !held.sampled) {
    return Broken(work.sequence, "names no token and none was sampled for it");
  }
  for (TokenId token : work.tokens) {
    if (token.value < model_.shape().vocab) continue;
    return Broken(work.sequence, absl::StrCat("has token ", token.value, "; the vocabulary has ",
                                              model_.shape().vocab));
  }
  return absl::OkStatus();
}

absl::Status StepRunner::TakeBlocks(const SequenceWork& work, Held& held) {
  for (BlockId block : work.new_blocks) {
    if (block.value >= blocks_taken_.size()) {
      return Broken(work.sequence,
                    absl::StrCat("takes block ", block.value, " of ", blocks_taken_.size()));
    }
    if (blocks_taken_[block.value]) return Broken(work.sequence, "takes a block in use");
    blocks_taken_[block.value] = true;
    held.block_table.push_back(block);
  }
  const uint64_t count = std::max<size_t>(work.tokens.size(), 1);
  if (work.position + count > uint64_t{held.block_table.size()} * model_.limits().block_tokens) {
    return Broken(work.sequence, "has too few blocks");
  }
  return absl::OkStatus();
}

absl::Status StepRunner::Prepare(const SequenceWork& work) {
  const auto it = sequences_.find(work.sequence.value);
  if (it == sequences_.end()) return Broken(work.sequence, "works but never started");
  Held& held = *it->second;
  if (absl::Status s = CheckTokens(work, held); !s.ok()) return s;
  if (absl::Status s = TakeBlocks(work, held); !s.ok()) return s;
  worked_slots_[held.slot.value] = true;
  const std::span<const TokenId> tokens = work.tokens.empty()
                                              ? std::span<const TokenId>(&*held.sampled, 1)
                                              : std::span<const TokenId>(work.tokens);
  // Cannot grow: one piece of work a slot, and that many were reserved.
  last_offsets_.push_back(static_cast<uint32_t>(tokens.size()) - 1);
  held_of_chunk_.push_back(&held);
  chunks_.push_back({.slot = held.slot,
                     .zero_slot = held.fresh,
                     .position = work.position,
                     .tokens = tokens,
                     .block_table = held.block_table,
                     .logit_offsets = work.sample
                                          ? std::span<const uint32_t>(&last_offsets_.back(), 1)
                                          : std::span<const uint32_t>()});
  return absl::OkStatus();
}

SequenceResult StepRunner::Sample(const SequenceWork& work, Held& held,
                                  std::span<const float> logits) {
  // A sequence that began again after preemption goes on with the draw it had come to.
  const uint32_t index =
      held.computed > held.prompt_tokens ? held.computed - held.prompt_tokens : 0;
  SampledToken sampled = SampleToken(logits, held.sampling, held.history, index, scratch_);
  held.sampled = sampled.token;
  return {.sequence = work.sequence,
          .token = sampled.token,
          .logprob = sampled.logprob,
          .top_logprobs = std::move(sampled.top_logprobs),
          .not_finite = sampled.not_finite};
}

}  // namespace tessera::engine
