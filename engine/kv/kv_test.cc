#include <random>

#include "engine/kv/block_table.h"
#include "engine/kv/id_pool.h"
#include "gtest/gtest.h"

namespace tessera::engine {
namespace {

TEST(IdPool, GivesEachIdOnceAndThenNone) {
  SlotPool pool(3);
  EXPECT_EQ(pool.Take(), SlotId(0));
  EXPECT_EQ(pool.Take(), SlotId(1));
  EXPECT_EQ(pool.Take(), SlotId(2));
  EXPECT_EQ(pool.Take(), std::nullopt);
  EXPECT_EQ(pool.taken_count(), 3u);
  pool.Give(SlotId(1));
  EXPECT_EQ(pool.free_count(), 1u);
  EXPECT_EQ(pool.Take(), SlotId(1));
}

TEST(IdPool, AbortsWhenAnIdIsGivenTwice) {
  SlotPool pool(2);
  const SlotId slot = *pool.Take();
  pool.Give(slot);
  EXPECT_DEATH(pool.Give(slot), "check failed");
  EXPECT_DEATH(pool.Give(SlotId(7)), "check failed");
}

TEST(BlockTable, TakesAllOrNothing) {
  BlockPool pool(4);
  BlockTable table;
  EXPECT_TRUE(table.Grow(pool, 3));
  EXPECT_FALSE(table.Grow(pool, 2));
  EXPECT_EQ(table.count(), 3u);
  EXPECT_EQ(pool.free_count(), 1u);
  table.Release(pool);
  EXPECT_EQ(pool.free_count(), 4u);
  EXPECT_EQ(table.count(), 0u);
}

TEST(BlockTable, ConservationFindsALeakAndAStranger) {
  BlockPool pool(4);
  BlockTable one, two;
  ASSERT_TRUE(one.Grow(pool, 2));
  ASSERT_TRUE(two.Grow(pool, 1));
  const BlockTable* both[] = {&one, &two};
  EXPECT_TRUE(CheckBlocksConserved(pool, both).ok());
  const BlockTable* first[] = {&one};
  EXPECT_FALSE(CheckBlocksConserved(pool, first).ok());
  const BlockTable* twice[] = {&one, &two, &one};
  EXPECT_FALSE(CheckBlocksConserved(pool, twice).ok());
  BlockPool other(4);
  EXPECT_FALSE(CheckBlocksConserved(other, both).ok());
}

TEST(BlockTable, BlocksAreConservedOverRandomGrowthAndRelease) {
  std::mt19937 random(7);
  BlockPool pool(64);
  std::vector<BlockTable> tables(8);
  std::vector<const BlockTable*> views;
  for (const BlockTable& table : tables) views.push_back(&table);
  for (int round = 0; round < 2000; ++round) {
    BlockTable& table = tables[random() % tables.size()];
    if (random() % 4 == 0) {
      table.Release(pool);
    } else {
      table.Grow(pool, random() % 9);
    }
    ASSERT_TRUE(CheckBlocksConserved(pool, views).ok()) << "round " << round;
  }
}

}  // namespace
}  // namespace tessera::engine
