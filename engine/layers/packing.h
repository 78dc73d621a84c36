#ifndef TESSERA_ENGINE_LAYERS_PACKING_H_
#define TESSERA_ENGINE_LAYERS_PACKING_H_

#include <vector>

#include "engine/device/cpu/arena.h"
#include "engine/kernels/matmul/matmul.h"
#include "engine/weights/weight_matrix.h"

namespace tessera::engine {

// The kernels' form of a checkpoint's matrix, in memory of `arena`. With a counting arena only the
// shape and format of the result have meaning. Cost: one pass over the matrix.
PackedMatrix Pack(const WeightMatrix& matrix, Arena& arena);

// A copy of `values` in `arena`.
const float* PackVector(const std::vector<float>& values, Arena& arena);

}  // namespace tessera::engine

#endif  // TESSERA_ENGINE_LAYERS_PACKING_H_
