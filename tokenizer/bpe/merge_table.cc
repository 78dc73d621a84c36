#include "tokenizer/bpe/merge_table.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <tuple>

namespace tessera::tokenizer {
namespace {

uint64_t Key(uint32_t left, uint32_t right) { return uint64_t{left} << 32 | right; }

}  // namespace

MergeTable::MergeTable(const std::vector<Merge>& merges) {
  table_.reserve(merges.size());
  for (uint32_t rank = 0; rank < merges.size(); ++rank) {
    // Of a repeated pair the last one counts.
    table_[Key(merges[rank].left, merges[rank].right)] = {rank, merges[rank].joined};
  }
}

MergeTable::Joined MergeTable::Find(uint32_t left, uint32_t right) const {
  const auto found = table_.find(Key(left, right));
  return found == table_.end() ? Joined{kNoRank, 0} : found->second;
}

void MergeTable::Apply(std::vector<uint32_t>& symbols) const {
  symbols.size() <= kLinearSymbolsMax ? ApplyLinear(symbols) : ApplyHeap(symbols);
}

void MergeTable::ApplyLinear(std::vector<uint32_t>& symbols) const {
  // pairs[i] joins symbols i and i + 1; only the neighbours of a merge are looked up again.
  Joined pairs[kLinearSymbolsMax];
  size_t count = symbols.size();
  for (size_t i = 0; i + 1 < count; ++i) pairs[i] = Find(symbols[i], symbols[i + 1]);
  while (count > 1) {
    size_t best = 0;
    for (size_t i = 1; i + 1 < count; ++i) {
      if (pairs[i].rank < pairs[best].rank) best = i;
    }
    if (pairs[best].rank == kNoRank) break;
    symbols[best] = pairs[best].id;
    std::copy(symbols.begin() + best + 2, symbols.begin() + count, symbols.begin() + best + 1);
    std::copy(pairs + best + 1, pairs + count - 1, pairs + best);
    --count;
    if (best > 0) pairs[best - 1] = Find(symbols[best - 1], symbols[best]);
    if (best + 1 < count) pairs[best] = Find(symbols[best], symbols[best + 1]);
  }
  symbols.resize(count);
}

void MergeTable::ApplyHeap(std::vector<uint32_t>& symbols) const {
  constexpr uint32_t kNone = 0xFFFFFFFF;
  const uint32_t count = static_cast<uint32_t>(symbols.size());
  std::vector<uint32_t> next(count), previous(count);
  for (uint32_t i = 0; i < count; ++i) {
    next[i] = i + 1 < count ? i + 1 : kNone;
    previous[i] = i > 0 ? i - 1 : kNone;
  }
  // (rank, place of the left symbol, its id, the right one's id, the joined one's). An entry is
  // stale when either symbol has changed since; a symbol that was merged away has the id kNone.
  using Entry = std::tuple<uint32_t, uint32_t, uint32_t, uint32_t, uint32_t>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<Entry>> queue;
  const auto push = [&](uint32_t left) {
    if (left == kNone || next[left] == kNone) return;
    const Joined joined = Find(symbols[left], symbols[next[left]]);
    if (joined.rank == kNoRank) return;
    queue.emplace(joined.rank, left, symbols[left], symbols[next[left]], joined.id);
  };
  for (uint32_t i = 0; i + 1 < count; ++i) push(i);
  while (!queue.empty()) {
    const auto [rank, left, left_id, right_id, joined_id] = queue.top();
    queue.pop();
    if (symbols[left] != left_id) continue;
    const uint32_t right = next[left];
    if (right == kNone || symbols[right] != right_id) continue;
    symbols[left] = joined_id;
    symbols[right] = kNone;
    next[left] = next[right];
    if (next[left] != kNone) previous[next[left]] = left;
    push(previous[left]);
    push(left);
  }
  std::erase(symbols, kNone);
}

}  // namespace tessera::tokenizer
