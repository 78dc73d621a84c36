#ifndef TESSERA_ENGINE_SAMPLING_ROW_MATH_H_
#define TESSERA_ENGINE_SAMPLING_ROW_MATH_H_

#include <cstdint>
#include <span>

namespace tessera::engine {

// What one pass over a row of logits finds.
struct RowMax {
  float value = 0;
  uint32_t index = 0;    // lowest index of `value`
  bool has_nan = false;  // then value and index mean nothing
};
// `row` has at least one element.
RowMax FindMax(std::span<const float> row);

// weights[i] = exp((row[i] - max) * inverse_temperature), zero below exp(-87); returns their sum.
// row[i] <= max; -infinity is legal. Relative error of a weight at most 2e-7 plus that of its
// argument. `weights` may be empty: only the sum is wanted.
double ExpWeights(std::span<const float> row, float max, float inverse_temperature,
                  std::span<float> weights);

}  // namespace tessera::engine

#endif  // TESSERA_ENGINE_SAMPLING_ROW_MATH_H_
