#include "engine/sampling/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/core/check.h"
#include "engine/sampling/row_math.h"

namespace tessera::engine {
namespace {

using Candidate = SamplerScratch::Candidate;

constexpr float kLargest = std::numeric_limits<float>::max();
constexpr float kNever = -std::numeric_limits<float>::infinity();
// Up to this many candidates a heap beside the scan is faster than a selection over the row.
constexpr uint32_t kHeapMax = 1024;

bool Likelier(const Candidate& a, const Candidate& b) {
  return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
}

// The `count` largest of `row`, most likely first, lower id first on a tie.
void SelectLargest(std::span<const float> row, uint32_t count, std::vector<Candidate>& out) {
  out.clear();
  if (count == 0) return;
  if (count > kHeapMax) {
    for (uint32_t i = 0; i < row.size(); ++i) out.push_back({row[i], i});
    if (count < out.size()) {
      std::nth_element(out.begin(), out.begin() + count, out.end(), Likelier);
      out.resize(count);
    }
    std::sort(out.begin(), out.end(), Likelier);
    return;
  }
  // The heap's front is the least likely one kept. Ids ascend, so a tie never replaces it.
  uint32_t i = 0;
  for (; i < row.size() && out.size() < count; ++i) out.push_back({row[i], i});
  std::make_heap(out.begin(), out.end(), Likelier);
  for (; i < row.size(); ++i) {
    if (row[i] > out.front().logit) {
      std::pop_heap(out.begin(), out.end(), Likelier);
      out.back() = {row[i], i};
      std::push_heap(out.begin(), out.end(), Likelier);
    }
  }
  std::sort_heap(out.begin(), out.end(), Likelier);
}

float Limited(float x) { return std::clamp(x, -kLargest, kLargest); }

bool IsOn(float penalty) { return std::isfinite(penalty) && penalty != 0; }

void ApplyPenalties(const SamplingParams& params, const TokenHistory& history,
                    std::span<float> logits) {
  const float repetition = params.repetition_penalty;
  const bool repeats = std::isfinite(repetition) && repetition > 0 && repetition != 1;
  const float presence = IsOn(params.presence_penalty) ? params.presence_penalty : 0;
  const float frequency = IsOn(params.frequency_penalty) ? params.frequency_penalty : 0;
  if (!repeats && presence == 0 && frequency == 0) return;
  for (const auto& [id, counts] : history.counts()) {
    if (id >= logits.size() || logits[id] == kNever) continue;
    float& logit = logits[id];
    if (repeats) logit = logit > 0 ? logit / repetition : logit * repetition;
    if (counts.output > 0) logit -= presence + frequency * static_cast<float>(counts.output);
    logit = Limited(logit);
  }
}

bool ForbidsEnds(const SamplingParams& params, uint32_t index) {
  return index < params.min_tokens && !params.end_ids.empty();
}

void ApplyBias(const SamplingParams& params, uint32_t index, std::span<float> logits) {
  for (const auto& [id, bias] : params.logit_bias) {
    if (id.value >= logits.size() || std::isnan(bias) || logits[id.value] == kNever) continue;
    logits[id.value] = bias == kNever ? kNever : Limited(logits[id.value] + bias);
  }
  if (!ForbidsEnds(params, index)) return;
  for (TokenId id : params.end_ids) {
    if (id.value < logits.size()) logits[id.value] = kNever;
  }
}

bool HasPenalties(const SamplingParams& params, const TokenHistory& history) {
  return !history.counts().empty() &&
         (params.repetition_penalty != 1 || IsOn(params.presence_penalty) ||
          IsOn(params.frequency_penalty));
}

// The token at `share` of [0, 1) of the cumulated weights; `weight(i)` of candidates 0..count-1.
template <typename Weight>
size_t DrawIndex(size_t count, double total, double share, Weight weight) {
  const double target = share * total;
  double sum = 0;
  size_t last = 0;
  for (size_t i = 0; i < count; ++i) {
    const double w = weight(i);
    if (w <= 0) continue;
    sum += w;
    last = i;
    if (sum > target) break;
  }
  // Rounding can leave the sum a hair short of the total: then it is the last one.
  return last;
}

// Fills `candidates` with the most likely tokens that together hold `top_p` of the row.
void SelectNucleus(std::span<const float> row, std::span<const float> weights, double total,
                   double top_p, std::vector<Candidate>& candidates) {
  // All tokens below this weight together weigh less than 1 - top_p of the total, so the nucleus
  // is complete without them.
  const double floor = (1.0 - top_p) * total / static_cast<double>(row.size());
  candidates.clear();
  for (uint32_t i = 0; i < row.size(); ++i) {
    if (weights[i] >= floor && weights[i] > 0) candidates.push_back({row[i], i});
  }
  // A heap gives them up one by one, most likely first: a nucleus is small as a rule.
  const auto less_likely = [](const Candidate& a, const Candidate& b) { return Likelier(b, a); };
  std::make_heap(candidates.begin(), candidates.end(), less_likely);
  auto end = candidates.end();
  double sum = 0;
  while (end != candidates.begin() && sum < top_p * total) {
    std::pop_heap(candidates.begin(), end, less_likely);
    --end;
    sum += weights[end->id];
  }
  // What was given up stands at the back, the most likely one last; top_p 0 still keeps one.
  if (end == candidates.end()) {
    std::pop_heap(candidates.begin(), end, less_likely);
    --end;
  }
  candidates.erase(candidates.begin(), end);
  std::reverse(candidates.begin(), candidates.end());
}

// Keeps the front of sorted candidates until their weights reach `top_p` of their sum.
void CutNucleus(double top_p, std::span<const float> weights, std::vector<Candidate>& candidates) {
  double total = 0;
  for (const Candidate& c : candidates) total += weights[c.id];
  double sum = 0;
  for (size_t i = 0; i < candidates.size(); ++i) {
    sum += weights[candidates[i].id];
    if (sum >= top_p * total) {
      candidates.resize(i + 1);
      return;
    }
  }
}

uint32_t Draw(std::span<const float> row, float max, const SamplingParams& params, uint32_t index,
              SamplerScratch& scratch) {
  scratch.weights.resize(row.size());
  const std::span<float> weights = scratch.weights;
  const double total = ExpWeights(row, max, 1.0f / params.temperature, weights);
  const double share = UniformDraw(params.seed, index);
  const bool k_on = params.top_k > 0 && params.top_k < row.size();
  const bool p_on = params.top_p >= 0 && params.top_p < 1;
  // The most likely token weighs 1, so min_p is a threshold on the weight itself.
  const float weight_min = params.min_p > 0 ? std::min(params.min_p, 1.0f) : 0.0f;
  const auto kept = [weight_min](float w) { return w >= weight_min ? w : 0.0f; };
  if (!k_on && !p_on) {
    double sum = total;
    if (weight_min > 0) {
      sum = 0;
      for (float w : weights) sum += kept(w);
    }
    return static_cast<uint32_t>(
        DrawIndex(row.size(), sum, share, [&](size_t i) { return kept(weights[i]); }));
  }
  std::vector<Candidate>& candidates = scratch.candidates;
  if (k_on) {
    SelectLargest(row, params.top_k, candidates);
    if (p_on) CutNucleus(params.top_p, weights, candidates);
  } else {
    SelectNucleus(row, weights, total, params.top_p, candidates);
  }
  double sum = 0;
  for (const Candidate& c : candidates) sum += kept(weights[c.id]);
  const size_t at = DrawIndex(candidates.size(), sum, share,
                              [&](size_t i) { return kept(weights[candidates[i].id]); });
  return candidates[at].id;
}

void AddLogprobs(std::span<const float> logits, float max, uint32_t count, SamplerScratch& scratch,
                 SampledToken& out) {
  const double log_sum = std::log(ExpWeights(logits, max, 1.0f, {})) + max;
  const auto logprob = [log_sum](float logit) { return static_cast<float>(logit - log_sum); };
  out.logprob = logprob(logits[out.token.value]);
  count = std::min({count, kLogprobsMax, static_cast<uint32_t>(logits.size())});
  SelectLargest(logits, count, scratch.candidates);
  out.top_logprobs.reserve(count);
  for (const Candidate& c : scratch.candidates) {
    out.top_logprobs.push_back({TokenId(c.id), logprob(c.logit)});
  }
}

}  // namespace

double UniformDraw(uint64_t seed, uint64_t index) {
  uint32_t key0 = static_cast<uint32_t>(seed);
  uint32_t key1 = static_cast<uint32_t>(seed >> 32);
  uint32_t c[4] = {static_cast<uint32_t>(index), static_cast<uint32_t>(index >> 32), 0, 0};
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xD2511F53} * c[0];
    const uint64_t b = uint64_t{0xCD9E8D57} * c[2];
    const uint32_t next[4] = {
        static_cast<uint32_t>(b >> 32) ^ c[1] ^ key0, static_cast<uint32_t>(b),
        static_cast<uint32_t>(a >> 32) ^ c[3] ^ key1, static_cast<uint32_t>(a)};
    std::copy(std::begin(next), std::end(next), c);
    key0 += 0x9E3779B9;
    key1 += 0xBB67AE85;
  }
  const uint64_t bits = (uint64_t{c[0]} << 32 | c[1]) >> 11;
  return static_cast<double>(bits) * 0x1.0p-53;
}

SampledToken SampleToken(std::span<const float> logits, const SamplingParams& params,
                         const TokenHistory& history, uint32_t index, SamplerScratch& scratch) {
  TESSERA_CHECK(!logits.empty(), std::string("no logits"));
  SampledToken out;
  const RowMax raw = FindMax(logits);
  if (raw.has_nan || !std::isfinite(raw.value)) {
    out.not_finite = true;
    return out;
  }
  std::span<const float> row = logits;
  RowMax best = raw;
  if (HasPenalties(params, history) || !params.logit_bias.empty() || ForbidsEnds(params, index)) {
    scratch.logits.assign(logits.begin(), logits.end());
    ApplyPenalties(params, history, scratch.logits);
    ApplyBias(params, index, scratch.logits);
    best = FindMax(scratch.logits);
    if (best.value == kNever) {
      scratch.logits.assign(logits.begin(), logits.end());
      ApplyPenalties(params, history, scratch.logits);
      best = FindMax(scratch.logits);
    }
    row = scratch.logits;
  }
  // Below the first bound every other token has weight 0 anyway, and 1 / temperature stays finite.
  const bool draws = params.temperature > 1e-6f && std::isfinite(params.temperature);
  out.token = TokenId(draws ? Draw(row, best.value, params, index, scratch) : best.index);
  if (params.logprobs) AddLogprobs(logits, raw.value, *params.logprobs, scratch, out);
  return out;
}

}  // namespace tessera::engine
