#include "engine/kernels/ssm/ssm.h"

#include <cmath>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace tessera::engine {
namespace {

std::vector<float> Random(size_t n, float low, float high, std::mt19937& random) {
  std::uniform_real_distribution<float> real(low, high);
  std::vector<float> values(n);
  for (float& value : values) value = real(random);
  return values;
}

TEST(CausalConvSilu, IsTheSumOverTheLastInputsForAnyCut) {
  std::mt19937 random(5);
  const uint32_t channels = 37, width = 4, tokens = 11;
  const std::vector<float> x = Random(channels * tokens, -1, 1, random);
  const std::vector<float> weight = Random(channels * width, -1, 1, random);
  const std::vector<float> bias = Random(channels, -1, 1, random);
  for (uint32_t cut = 0; cut <= tokens; ++cut) {
    std::vector<float> y(channels * tokens, NAN), state(channels * (width - 1), 0);
    for (const auto& [begin, end] : {std::pair{0u, cut}, std::pair{cut, tokens}}) {
      CausalConvSilu(DetectCpuLevel(), {.x = x.data() + begin * channels,
                                        .x_stride = channels,
                                        .y = y.data() + begin * channels,
                                        .y_stride = channels,
                                        .weight = weight.data(),
                                        .bias = bias.data(),
                                        .state = state.data(),
                                        .channels_total = channels,
                                        .channels = channels,
                                        .width = width,
                                        .tokens = end - begin});
    }
    for (uint32_t t = 0; t < tokens; ++t) {
      for (uint32_t ch = 0; ch < channels; ++ch) {
        double sum = bias[ch];
        for (uint32_t j = 0; j < width; ++j) {
          if (t + j >= width - 1)
            sum += double{weight[j * channels + ch]} * x[(t + j - 3) * channels + ch];
        }
        ASSERT_NEAR(y[t * channels + ch], sum / (1 + std::exp(-sum)), 2e-6) << "cut " << cut;
      }
    }
  }
}

TEST(ScanHead, IsTheRecurrenceForEveryStateSizeAndAnyCut) {
  std::mt19937 random(9);
  for (uint32_t n : {1u, 8u, 24u, 40u, 48u, 64u, 96u, 128u, 13u}) {
    for (uint32_t head_dim : {1u, 6u, 64u}) {
      const uint32_t tokens = 9;
      const size_t stride = head_dim + 2 * n;
      const std::vector<float> xbc = Random(stride * tokens, -1, 1, random);
      const std::vector<float> dt = Random(tokens, 0.01f, 1, random);
      // Float64 reference.
      std::vector<double> expected, state64(head_dim * n, 0);
      const float a = -0.7f, d = 0.3f;
      for (uint32_t t = 0; t < tokens; ++t) {
        const float* const x = xbc.data() + t * stride;
        for (uint32_t p = 0; p < head_dim; ++p) {
          double sum = double{d} * x[p];
          for (uint32_t i = 0; i < n; ++i) {
            double& s = state64[p * n + i];
            s = std::exp(double{a} * dt[t]) * s + double{dt[t]} * x[p] * x[head_dim + i];
            sum += s * x[head_dim + n + i];
          }
          expected.push_back(sum);
        }
      }
      for (CpuLevel level : {CpuLevel::kReference, DetectCpuLevel()}) {
        for (uint32_t cut : {0u, 1u, 5u}) {
          std::vector<float> state(head_dim * n, 0), y(head_dim * tokens, NAN);
          for (const auto& [begin, end] : {std::pair{0u, cut}, std::pair{cut, tokens}}) {
            const float* const x = xbc.data() + begin * stride;
            ScanHead(level, {.x = x,
                             .b = x + head_dim,
                             .c = x + head_dim + n,
                             .xbc_stride = stride,
                             .dt = dt.data() + begin,
                             .dt_stride = 1,
                             .a = a,
                             .d = d,
                             .state = state.data(),
                             .y = y.data() + begin * head_dim,
                             .y_stride = head_dim,
                             .head_dim = head_dim,
                             .n = n,
                             .tokens = end - begin});
          }
          // n products of size at most tokens * 1, each rounded a few times.
          for (size_t i = 0; i < expected.size(); ++i) {
            ASSERT_NEAR(y[i], expected[i], n * tokens * 3e-7 + 1e-6) << "n " << n << " cut " << cut;
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace tessera::engine
