#include "services/gateway/sampling_fields.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace tessera::gateway {
namespace {

using nlohmann::ordered_json;

void ReadLogitBias(JsonFields& fields, engine::v1::SamplingParams& sampling) {
  const ordered_json* const bias = fields.Object("logit_bias");
  if (bias == nullptr) return;
  if (bias->size() > kLogitBiasMax) {
    fields.Fail("logit_bias",
                absl::StrCat("has ", bias->size(), " entries; give at most ", kLogitBiasMax));
    return;
  }
  for (const auto& [key, value] : bias->items()) {
    uint32_t id = 0;
    if (!absl::SimpleAtoi(key, &id)) {
      fields.Fail(absl::StrCat("logit_bias.", key.substr(0, 32)),
                  "is no token id; give a whole number as the key");
      return;
    }
    if (!value.is_number()) {
      fields.Fail(absl::StrCat("logit_bias.", key), "must be a number");
      return;
    }
    (*sampling.mutable_logit_bias())[id] = value.get<float>();
  }
}

void ReadStopTokens(JsonFields& fields, engine::v1::SamplingParams& sampling) {
  const ordered_json* const ids = fields.Array("stop_token_ids", kStopTokensMax);
  if (ids == nullptr) return;
  for (size_t i = 0; i < ids->size(); ++i) {
    const ordered_json& id = (*ids)[i];
    if (!id.is_number_unsigned() || id.get<uint64_t>() > UINT32_MAX) {
      fields.Fail(absl::StrCat("stop_token_ids[", i, "]"), "must be a token id");
      return;
    }
    sampling.add_stop_token_ids(id.get<uint32_t>());
  }
}

}  // namespace

void ReadSampling(JsonFields& fields, engine::v1::SamplingParams& sampling) {
  const auto real = [&](const char* key, auto set) {
    if (const auto value = fields.Number(key)) set(static_cast<float>(*value));
  };
  real("temperature", [&](float v) { sampling.set_temperature(v); });
  real("top_p", [&](float v) { sampling.set_top_p(v); });
  real("min_p", [&](float v) { sampling.set_min_p(v); });
  real("repetition_penalty", [&](float v) { sampling.set_repetition_penalty(v); });
  real("presence_penalty", [&](float v) { sampling.set_presence_penalty(v); });
  real("frequency_penalty", [&](float v) { sampling.set_frequency_penalty(v); });
  // vLLM's clients say -1 for "all", which is 0 here.
  if (const auto top_k = fields.Integer("top_k", -1, INT32_MAX)) {
    sampling.set_top_k(*top_k < 0 ? 0 : static_cast<uint32_t>(*top_k));
  }
  if (const auto seed = fields.Integer("seed", INT64_MIN, INT64_MAX)) {
    sampling.set_seed(static_cast<uint64_t>(*seed));
  }
  // The newer name wins where both are given.
  for (const char* const key : {"max_tokens", "max_completion_tokens"}) {
    if (const auto tokens = fields.Integer(key, 1, INT32_MAX)) {
      sampling.set_max_tokens(static_cast<uint32_t>(*tokens));
    }
  }
  if (const auto tokens = fields.Integer("min_tokens", 0, INT32_MAX)) {
    sampling.set_min_tokens(static_cast<uint32_t>(*tokens));
  }
  if (const auto n = fields.Integer("n", 1, 16)) sampling.set_n(static_cast<uint32_t>(*n));
  if (const auto ignore = fields.Bool("ignore_eos")) sampling.set_ignore_eos(*ignore);
  ReadLogitBias(fields, sampling);
  ReadStopTokens(fields, sampling);
}

void ReadStop(JsonFields& fields, google::protobuf::RepeatedPtrField<std::string>& stop) {
  const ordered_json* const value = fields.Find("stop");
  if (value == nullptr) return;
  const auto add = [&](const std::string& name, const ordered_json& entry) {
    if (!entry.is_string()) {
      fields.Fail(name, "must be a string");
      return;
    }
    const auto& text = entry.get_ref<const std::string&>();
    if (text.empty() || text.size() > kStopStringBytesMax) {
      fields.Fail(name,
                  absl::StrCat("is ", text.size(), " bytes long; give 1 to ", kStopStringBytesMax));
      return;
    }
    *stop.Add() = text;
  };
  if (value->is_string()) {
    add("stop", *value);
  } else if (!value->is_array()) {
    fields.Fail("stop", "must be a string or an array of strings");
  } else if (const ordered_json* const list = fields.Array("stop", kStopStringsMax)) {
    for (size_t i = 0; i < list->size(); ++i) add(absl::StrCat("stop[", i, "]"), (*list)[i]);
  }
}

StreamOptions ReadStreamOptions(JsonFields& fields) {
  StreamOptions options;
  options.stream = fields.Bool("stream").value_or(false);
  if (const ordered_json* const object = fields.Object("stream_options")) {
    JsonFields inner(*object, "stream_options.");
    options.include_usage = inner.Bool("include_usage").value_or(false);
    options.continuous_usage = inner.Bool("continuous_usage_stats").value_or(false);
    fields.Fail(inner.status());
  }
  return options;
}

}  // namespace tessera::gateway
