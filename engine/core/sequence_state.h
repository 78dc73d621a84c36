#ifndef TESSERA_ENGINE_CORE_SEQUENCE_STATE_H_
#define TESSERA_ENGINE_CORE_SEQUENCE_STATE_H_

#include <cstdint>

namespace tessera::engine {

// Where a sequence is in its life. The values have no order.
enum class SequenceState : uint8_t { kWaiting, kPrefilling, kDecoding, kPreempted, kFinished };

inline constexpr SequenceState kSequenceStates[] = {
    SequenceState::kWaiting, SequenceState::kPrefilling, SequenceState::kDecoding,
    SequenceState::kPreempted, SequenceState::kFinished};

struct SequenceEdge {
  SequenceState from, to;
};

// Every legal move; there is no other.
inline constexpr SequenceEdge kSequenceEdges[] = {
    {SequenceState::kWaiting, SequenceState::kPrefilling},    // admitted: slot and blocks taken
    {SequenceState::kPrefilling, SequenceState::kDecoding},   // last prompt chunk dispatched
    {SequenceState::kPrefilling, SequenceState::kPreempted},  // out of blocks: all given back
    {SequenceState::kDecoding, SequenceState::kPreempted},
    {SequenceState::kPreempted, SequenceState::kPrefilling},  // admitted again, computed anew
    {SequenceState::kWaiting, SequenceState::kFinished},      // ended in the queue
    {SequenceState::kPrefilling, SequenceState::kFinished},
    {SequenceState::kDecoding, SequenceState::kFinished},
    {SequenceState::kPreempted, SequenceState::kFinished},
};

// "waiting", "prefilling", ...
const char* SequenceStateName(SequenceState state);

// Whether kSequenceEdges holds the move.
bool CanMove(SequenceState from, SequenceState to);

// Moves; a move that is not in the table is our bug and aborts with both names.
void MoveTo(SequenceState& state, SequenceState to);

// Whether a sequence in this state holds a slot and blocks.
inline bool IsRunning(SequenceState state) {
  return state == SequenceState::kPrefilling || state == SequenceState::kDecoding;
}

}  // namespace tessera::engine

#endif  // TESSERA_ENGINE_CORE_SEQUENCE_STATE_H_
