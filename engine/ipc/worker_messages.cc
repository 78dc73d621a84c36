#include "engine/ipc/worker_messages.h"

#include <cmath>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace tessera::engine {
namespace {

namespace v1 = worker::v1;

absl::Status Bound(const std::string& field, int64_t value, int64_t low, int64_t high) {
  if (value >= low && value <= high) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("worker protocol: ", field, " is ", value, "; allowed: ", low, " to ", high));
}

void ToProto(const SamplingParams& sampling, v1::ResolvedSampling& proto) {
  proto.set_temperature(sampling.temperature);
  proto.set_top_k(sampling.top_k);
  proto.set_top_p(sampling.top_p);
  proto.set_min_p(sampling.min_p);
  proto.set_repetition_penalty(sampling.repetition_penalty);
  proto.set_presence_penalty(sampling.presence_penalty);
  proto.set_frequency_penalty(sampling.frequency_penalty);
  for (const auto& [token, bias] : sampling.logit_bias) {
    proto.add_bias_ids(token.value);
    proto.add_bias_values(bias);
  }
  proto.set_seed(sampling.seed);
  proto.set_min_tokens(sampling.min_tokens);
  for (TokenId token : sampling.end_ids) proto.add_end_ids(token.value);
  proto.set_logprobs(sampling.logprobs ? static_cast<int32_t>(*sampling.logprobs) : -1);
}

absl::StatusOr<SamplingParams> FromProto(const v1::ResolvedSampling& proto) {
  if (absl::Status s = Bound("bias_ids", proto.bias_ids_size(), 0, kSamplingEntriesMax); !s.ok()) {
    return s;
  }
  if (absl::Status s = Bound("end_ids", proto.end_ids_size(), 0, kSamplingEntriesMax); !s.ok()) {
    return s;
  }
  if (absl::Status s = Bound("logprobs", proto.logprobs(), -1, kResultLogprobsMax); !s.ok()) {
    return s;
  }
  if (proto.bias_ids_size() != proto.bias_values_size()) {
    return absl::InvalidArgumentError("worker protocol: bias_ids and bias_values differ in length");
  }
  for (const float value :
       {proto.temperature(), proto.top_p(), proto.min_p(), proto.repetition_penalty(),
        proto.presence_penalty(), proto.frequency_penalty()}) {
    if (!std::isfinite(value)) {
      return absl::InvalidArgumentError("worker protocol: a sampling parameter is not finite");
    }
  }
  SamplingParams sampling = {.temperature = proto.temperature(),
                             .top_k = proto.top_k(),
                             .top_p = proto.top_p(),
                             .min_p = proto.min_p(),
                             .repetition_penalty = proto.repetition_penalty(),
                             .presence_penalty = proto.presence_penalty(),
                             .frequency_penalty = proto.frequency_penalty(),
                             .seed = proto.seed(),
                             .min_tokens = proto.min_tokens()};
  for (int i = 0; i < proto.bias_ids_size(); ++i) {
    sampling.logit_bias.emplace_back(TokenId(proto.bias_ids(i)), proto.bias_values(i));
  }
  for (uint32_t id : proto.end_ids()) sampling.end_ids.push_back(TokenId(id));
  if (proto.logprobs() >= 0) sampling.logprobs = static_cast<uint32_t>(proto.logprobs());
  return sampling;
}

}  // namespace

void ToProto(const WorkerLoad& load, v1::LoadRequest& proto) {
  proto.set_model_path(load.model_path);
  proto.set_slots(load.slots);
  proto.set_blocks(load.blocks);
  proto.set_block_tokens(load.block_tokens);
  proto.set_step_tokens_max(load.step_tokens_max);
  proto.set_rank(load.rank);
  proto.set_world_size(load.world_size);
}

absl::StatusOr<WorkerLoad> FromProto(const v1::LoadRequest& proto) {
  if (absl::Status s = Bound("slots", proto.slots(), 1, kPlanSequencesMax); !s.ok()) return s;
  if (absl::Status s = Bound("blocks", proto.blocks(), 1, int64_t{1} << 31); !s.ok()) return s;
  if (absl::Status s = Bound("block_tokens", proto.block_tokens(), 1, 4096); !s.ok()) return s;
  if (absl::Status s = Bound("step_tokens_max", proto.step_tokens_max(), 1, kPlanTokensMax);
      !s.ok()) {
    return s;
  }
  if (absl::Status s = Bound("world_size", proto.world_size(), 1, 64); !s.ok()) return s;
  if (absl::Status s = Bound("rank", proto.rank(), 0, int64_t{proto.world_size()} - 1); !s.ok()) {
    return s;
  }
  return WorkerLoad{.model_path = proto.model_path(),
                    .slots = proto.slots(),
                    .blocks = proto.blocks(),
                    .block_tokens = proto.block_tokens(),
                    .step_tokens_max = proto.step_tokens_max(),
                    .rank = proto.rank(),
                    .world_size = proto.world_size()};
}

void ToProto(const StepPlan& plan, v1::StepPlan& proto) {
  proto.set_step(plan.step);
  for (SequenceId id : plan.ended) proto.add_ended(id.value);
  for (const SequenceStart& start : plan.started) {
    v1::SequenceStart& out = *proto.add_started();
    out.set_sequence_id(start.sequence.value);
    out.set_slot(start.slot.value);
    out.set_prompt_tokens(start.prompt_tokens);
    ToProto(start.sampling, *out.mutable_sampling());
  }
  for (const SequenceWork& work : plan.work) {
    v1::SequenceWork& out = *proto.add_work();
    out.set_sequence_id(work.sequence.value);
    out.set_position(work.position);
    out.mutable_tokens()->Reserve(static_cast<int>(work.tokens.size()));
    for (TokenId token : work.tokens) out.add_tokens(token.value);
    out.mutable_new_blocks()->Reserve(static_cast<int>(work.new_blocks.size()));
    for (BlockId block : work.new_blocks) out.add_new_blocks(block.value);
    out.set_sample(work.sample);
  }
}

absl::StatusOr<StepPlan> FromProto(const v1::StepPlan& proto) {
  for (const auto& [field, count] : {std::pair<const char*, int>{"plan.ended", proto.ended_size()},
                                     {"plan.started", proto.started_size()},
                                     {"plan.work", proto.work_size()}}) {
    if (absl::Status s = Bound(field, count, 0, kPlanSequencesMax); !s.ok()) return s;
  }
  int64_t tokens = 0;
  int64_t blocks = 0;
  for (const v1::SequenceWork& work : proto.work()) {
    tokens += work.tokens_size();
    blocks += work.new_blocks_size();
  }
  if (absl::Status s = Bound("plan tokens", tokens, 0, kPlanTokensMax); !s.ok()) return s;
  if (absl::Status s = Bound("plan blocks", blocks, 0, kPlanBlocksMax); !s.ok()) return s;
  StepPlan plan;
  plan.step = proto.step();
  plan.ended.reserve(static_cast<size_t>(proto.ended_size()));
  for (uint64_t id : proto.ended()) plan.ended.push_back(SequenceId(id));
  for (const v1::SequenceStart& start : proto.started()) {
    absl::StatusOr<SamplingParams> sampling = FromProto(start.sampling());
    if (!sampling.ok()) return sampling.status();
    plan.started.push_back({.sequence = SequenceId(start.sequence_id()),
                            .slot = SlotId(start.slot()),
                            .prompt_tokens = start.prompt_tokens(),
                            .sampling = *std::move(sampling)});
  }
  plan.work.reserve(static_cast<size_t>(proto.work_size()));
  for (const v1::SequenceWork& work : proto.work()) {
    SequenceWork& out = plan.work.emplace_back();
    out.sequence = SequenceId(work.sequence_id());
    out.position = work.position();
    out.tokens.reserve(static_cast<size_t>(work.tokens_size()));
    for (uint32_t token : work.tokens()) out.tokens.push_back(TokenId(token));
    for (uint32_t block : work.new_blocks()) out.new_blocks.push_back(BlockId(block));
    out.sample = work.sample();
  }
  return plan;
}

void ToProto(const StepResult& result, v1::StepResult& proto) {
  proto.set_step(result.step);
  proto.set_device_microseconds(result.device_us);
  for (const SequenceResult& one : result.results) {
    v1::SequenceResult& out = *proto.add_results();
    out.set_sequence_id(one.sequence.value);
    out.set_token(one.token.value);
    out.set_not_finite(one.not_finite);
    // Whether log probabilities were asked for is known to both ends; 0 stands for none.
    if (one.logprob) out.set_logprob(*one.logprob);
    for (const TokenLogprob& top : one.top_logprobs) {
      v1::Logprob& logprob = *out.add_top_logprobs();
      logprob.set_id(top.token.value);
      logprob.set_logprob(top.logprob);
    }
  }
}

absl::StatusOr<StepResult> FromProto(const v1::StepResult& proto) {
  if (absl::Status s = Bound("result.results", proto.results_size(), 0, kPlanSequencesMax);
      !s.ok()) {
    return s;
  }
  StepResult result = {.step = proto.step(), .device_us = proto.device_microseconds()};
  result.results.reserve(static_cast<size_t>(proto.results_size()));
  for (const v1::SequenceResult& one : proto.results()) {
    if (absl::Status s =
            Bound("result.top_logprobs", one.top_logprobs_size(), 0, kResultLogprobsMax);
        !s.ok()) {
      return s;
    }
    SequenceResult& out = result.results.emplace_back();
    out.sequence = SequenceId(one.sequence_id());
    out.token = TokenId(one.token());
    out.logprob = one.logprob();
    out.not_finite = one.not_finite();
    for (const v1::Logprob& top : one.top_logprobs()) {
      out.top_logprobs.push_back({.token = TokenId(top.id()), .logprob = top.logprob()});
    }
  }
  return result;
}

}  // namespace tessera::engine
