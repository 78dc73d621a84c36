#include "engine/core/sequence_state.h"

#include <set>

#include "gtest/gtest.h"

namespace tessera::engine {
namespace {

bool InTable(SequenceState from, SequenceState to) {
  for (const SequenceEdge& edge : kSequenceEdges) {
    if (edge.from == from && edge.to == to) return true;
  }
  return false;
}

TEST(SequenceState, MovesExactlyAlongTheTable) {
  testing::FLAGS_gtest_death_test_style = "fast";
  int legal = 0;
  for (SequenceState from : kSequenceStates) {
    for (SequenceState to : kSequenceStates) {
      SequenceState state = from;
      EXPECT_EQ(CanMove(from, to), InTable(from, to));
      if (InTable(from, to)) {
        MoveTo(state, to);
        EXPECT_EQ(state, to);
        ++legal;
      } else {
        EXPECT_DEATH(MoveTo(state, to), SequenceStateName(to));
      }
    }
  }
  EXPECT_EQ(legal, 9);
}

TEST(SequenceState, EveryStateIsReachedFromWaiting) {
  std::set<SequenceState> reached = {SequenceState::kWaiting};
  for (size_t round = 0; round < std::size(kSequenceStates); ++round) {
    for (const SequenceEdge& edge : kSequenceEdges) {
      if (reached.count(edge.from)) reached.insert(edge.to);
    }
  }
  EXPECT_EQ(reached.size(), std::size(kSequenceStates));
}

TEST(SequenceState, FinishedHasNoWayOutAndEveryOtherStateLeadsToIt) {
  for (SequenceState state : kSequenceStates) {
    EXPECT_FALSE(CanMove(SequenceState::kFinished, state));
    if (state != SequenceState::kFinished) {
      EXPECT_TRUE(CanMove(state, SequenceState::kFinished));
    }
  }
}

TEST(SequenceState, EveryStateHasItsOwnName) {
  std::set<std::string> names;
  for (SequenceState state : kSequenceStates) names.insert(SequenceStateName(state));
  EXPECT_EQ(names.size(), std::size(kSequenceStates));
}

}  // namespace
}  // namespace tessera::engine
