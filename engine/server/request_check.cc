#include "engine/server/request_check.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "services/common/field_error.h"

namespace tessera::engine {
namespace {

using services::FieldError;
using services::InvalidField;

absl::Status CheckToken(const std::string& field, uint32_t id, uint32_t vocab) {
  if (id < vocab) return absl::OkStatus();
  return InvalidField(field, absl::StrCat("is ", id, "; the vocabulary has ", vocab));
}

// `low` belongs to the range unless `low_open`. NaN belongs to none.
absl::Status CheckFloat(const char* field, float value, float low, float high,
                        bool low_open = false) {
  if (std::isfinite(value) && value <= high && (low_open ? value > low : value >= low)) {
    return absl::OkStatus();
  }
  return InvalidField(absl::StrCat("sampling.", field),
                      absl::StrCat("is ", value, "; give a number ", low_open ? "above " : "from ",
                                   low, low_open ? " and up to " : " to ", high));
}

absl::Status CheckPrompt(const v1::TokenIds& prompt, const ModelFacts& model) {
  if (prompt.ids_size() == 0)
    return InvalidField("prompt.ids", "is empty; give at least one token");
  const auto tokens = static_cast<uint64_t>(prompt.ids_size());
  if (tokens >= model.context_tokens_max) {
    return FieldError(
        absl::StatusCode::kOutOfRange, "prompt.ids",
        absl::StrCat("has ", tokens, " tokens; the context of ", model.context_tokens_max,
                     " leaves room for at most ", model.context_tokens_max - 1));
  }
  for (int i = 0; i < prompt.ids_size(); ++i) {
    if (prompt.ids(i) < model.vocab) continue;
    return CheckToken(absl::StrCat("prompt.ids[", i, "]"), prompt.ids(i), model.vocab);
  }
  return absl::OkStatus();
}

absl::Status ResolveFloats(const v1::SamplingParams& proto, const ModelFacts& model,
                           SamplingParams& out) {
  out.temperature = proto.has_temperature() ? proto.temperature() : model.temperature;
  out.top_p = proto.has_top_p() ? proto.top_p() : model.top_p;
  out.min_p = proto.min_p();
  out.top_k = proto.has_top_k() ? proto.top_k() : model.top_k;
  out.repetition_penalty =
      proto.has_repetition_penalty() ? proto.repetition_penalty() : model.repetition_penalty;
  out.presence_penalty = proto.presence_penalty();
  out.frequency_penalty = proto.frequency_penalty();
  absl::Status status = CheckFloat("temperature", out.temperature, 0, kTemperatureMax);
  status.Update(CheckFloat("top_p", out.top_p, 0, 1, /*low_open=*/true));
  status.Update(CheckFloat("min_p", out.min_p, 0, 1));
  status.Update(CheckFloat("repetition_penalty", out.repetition_penalty, 0, kRepetitionPenaltyMax,
                           /*low_open=*/true));
  status.Update(CheckFloat("presence_penalty", out.presence_penalty, -2, 2));
  status.Update(CheckFloat("frequency_penalty", out.frequency_penalty, -2, 2));
  return status;
}

absl::Status ResolveBias(const v1::SamplingParams& proto, const ModelFacts& model,
                         SamplingParams& out) {
  const auto entries = proto.logit_bias().size();
  if (entries > static_cast<size_t>(kLogitBiasEntriesMax)) {
    return InvalidField(
        "sampling.logit_bias",
        absl::StrCat("has ", entries, " entries; give at most ", kLogitBiasEntriesMax));
  }
  for (const auto& [id, bias] : proto.logit_bias()) {
    const std::string name = absl::StrCat("logit_bias[", id, "]");
    if (absl::Status s = CheckToken("sampling." + name, id, model.vocab); !s.ok()) return s;
    if (absl::Status s = CheckFloat(name.c_str(), bias, -kLogitBiasMax, kLogitBiasMax); !s.ok()) {
      return s;
    }
    out.logit_bias.emplace_back(TokenId(id), bias);
  }
  // A map has no order of its own; equal requests are to give equal plans.
  std::sort(out.logit_bias.begin(), out.logit_bias.end());
  return absl::OkStatus();
}

absl::Status ResolveEnds(const v1::SamplingParams& proto, const ModelFacts& model,
                         GenerationRequest& out) {
  if (!proto.ignore_eos()) out.eos_ids = model.eos_ids;
  if (proto.stop_token_ids_size() > kStopTokensMax) {
    return InvalidField(
        "sampling.stop_token_ids",
        absl::StrCat("has ", proto.stop_token_ids_size(), " ids; give at most ", kStopTokensMax));
  }
  for (int i = 0; i < proto.stop_token_ids_size(); ++i) {
    const uint32_t id = proto.stop_token_ids(i);
    if (absl::Status s =
            CheckToken(absl::StrCat("sampling.stop_token_ids[", i, "]"), id, model.vocab);
        !s.ok()) {
      return s;
    }
    out.stop_ids.push_back(TokenId(id));
  }
  return absl::OkStatus();
}

absl::Status ResolveCounts(const v1::SamplingParams& proto, const ModelFacts& model,
                           GenerationRequest& out) {
  const auto room = model.context_tokens_max - static_cast<uint32_t>(out.prompt.size());
  if (proto.has_max_tokens() && proto.max_tokens() == 0) {
    return InvalidField("sampling.max_tokens", "is 0; give at least 1");
  }
  // A length that the context cannot hold ends there, with LENGTH.
  out.max_tokens = proto.has_max_tokens() ? std::min(proto.max_tokens(), room) : room;
  if (proto.has_max_tokens() && proto.min_tokens() > proto.max_tokens()) {
    return InvalidField(
        "sampling.min_tokens",
        absl::StrCat("is ", proto.min_tokens(), "; max_tokens is ", proto.max_tokens()));
  }
  out.sampling.min_tokens = proto.min_tokens();
  if (proto.has_logprobs()) {
    if (proto.logprobs() > kTopLogprobsMax) {
      return InvalidField("sampling.logprobs", absl::StrCat("is ", proto.logprobs(),
                                                            "; give at most ", kTopLogprobsMax));
    }
    out.sampling.logprobs = proto.logprobs();
  }
  out.choices = proto.has_n() ? proto.n() : 1;
  if (out.choices < 1 || out.choices > kChoicesMax) {
    return InvalidField("sampling.n",
                        absl::StrCat("is ", out.choices, "; give 1 to ", kChoicesMax));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<GenerationRequest> CheckRequest(const v1::GenerateRequest& proto,
                                               const ModelFacts& model, uint64_t drawn_seed) {
  if (!proto.model().empty() && proto.model() != model.name) {
    return FieldError(absl::StatusCode::kNotFound, "model",
                      absl::StrCat("is '", proto.model().substr(0, 128), "'; this engine serves '",
                                   model.name, "'"));
  }
  if (absl::Status s = CheckPrompt(proto.prompt(), model); !s.ok()) return s;
  GenerationRequest out;
  out.prompt.reserve(static_cast<size_t>(proto.prompt().ids_size()));
  for (uint32_t id : proto.prompt().ids()) out.prompt.push_back(TokenId(id));
  out.priority = proto.priority();
  const v1::SamplingParams& sampling = proto.sampling();
  out.sampling.seed = sampling.has_seed() ? sampling.seed() : drawn_seed;
  if (absl::Status s = ResolveFloats(sampling, model, out.sampling); !s.ok()) return s;
  if (absl::Status s = ResolveBias(sampling, model, out.sampling); !s.ok()) return s;
  if (absl::Status s = ResolveEnds(sampling, model, out); !s.ok()) return s;
  if (absl::Status s = ResolveCounts(sampling, model, out); !s.ok()) return s;
  return out;
}

}  // namespace tessera::engine
