#include <random>
#include <vector>

#include "benchmark/benchmark.h"
#include "engine/sampling/sampler.h"

// Time of one token from a row of 131,072 logits shaped like a language model's.

namespace tessera::engine {
namespace {

std::vector<float> Row() {
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0.0f, 2.5f);
  std::vector<float> row(131072);
  for (float& x : row) x = normal(random);
  for (int i = 0; i < 20; ++i) row[random() % row.size()] += 12.0f;
  return row;
}

void Run(benchmark::State& state, const SamplingParams& params) {
  const std::vector<float> row = Row();
  SamplerScratch scratch;
  uint32_t index = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(SampleToken(row, params, {}, index++, scratch));
  }
}

SamplingParams Params(float temperature, uint32_t top_k, float top_p) {
  SamplingParams params;
  params.temperature = temperature;
  params.top_k = top_k;
  params.top_p = top_p;
  return params;
}

void BM_Greedy(benchmark::State& state) { Run(state, Params(0, 0, 1)); }
void BM_Plain(benchmark::State& state) { Run(state, Params(1, 0, 1)); }
void BM_TopK50(benchmark::State& state) { Run(state, Params(1, 50, 1)); }
void BM_TopP95(benchmark::State& state) { Run(state, Params(1, 0, 0.95f)); }
void BM_Flat(benchmark::State& state) { Run(state, Params(10, 0, 0.95f)); }
void BM_GreedyLogprobs20(benchmark::State& state) {
  SamplingParams params = Params(0, 0, 1);
  params.logprobs = 20;
  Run(state, params);
}
BENCHMARK(BM_Greedy);
BENCHMARK(BM_Plain);
BENCHMARK(BM_TopK50);
BENCHMARK(BM_TopP95);
BENCHMARK(BM_Flat);
BENCHMARK(BM_GreedyLogprobs20);

}  // namespace
}  // namespace tessera::engine
