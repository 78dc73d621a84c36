#include "engine/core/sequence_state.h"

#include <string>

#include "engine/core/check.h"

namespace tessera::engine {

const char* SequenceStateName(SequenceState state) {
  switch (state) {
    case SequenceState::kWaiting:
      return "waiting";
    case SequenceState::kPrefilling:
      return "prefilling";
    case SequenceState::kDecoding:
      return "decoding";
    case SequenceState::kPreempted:
      return "preempted";
    case SequenceState::kFinished:
      return "finished";
  }
  return "unknown";
}

bool CanMove(SequenceState from, SequenceState to) {
  for (const SequenceEdge& edge : kSequenceEdges) {
    if (edge.from == from && edge.to == to) return true;
  }
  return false;
}

void MoveTo(SequenceState& state, SequenceState to) {
  TESSERA_CHECK(CanMove(state, to),
                std::string(SequenceStateName(state)) + " -> " + SequenceStateName(to));
  state = to;
}

}  // namespace tessera::engine
