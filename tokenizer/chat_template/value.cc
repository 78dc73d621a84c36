#include "tokenizer/chat_template/value.h"

#include <algorithm>
#include <cmath>

#include "absl/hash/hash.h"
#include "tokenizer/chat_template/big_int.h"

namespace tessera::tokenizer::jinja {
namespace {

constexpr int kEqualDepthMax = 500;

// Numbers of different kinds that are equal must hash alike, hence all through double.
uint64_t HashNumber(const Value& v) {
  double d = 0;
  switch (v.kind) {
    case Kind::kFloat:
      d = v.real;
      break;
    case Kind::kBigInt:
      d = BigInt::OfValue(v).ToDouble();
      break;
    default:
      d = static_cast<double>(v.integer);
  }
  return absl::HashOf(d == 0 ? 0.0 : d);
}

bool EqualNumbers(const Value& a, const Value& b) {
  if (a.small_int() && b.small_int()) return a.integer == b.integer;
  if (a.kind == Kind::kFloat && b.kind == Kind::kFloat) return a.real == b.real;
  if (a.kind == Kind::kFloat) return EqualNumbers(b, a);
  if (b.kind == Kind::kFloat) {
    if (!std::isfinite(b.real) || b.real != std::trunc(b.real)) return false;
    return Compare(BigInt::OfValue(a), BigInt::OfDouble(b.real)) == 0;
  }
  return Compare(BigInt::OfValue(a), BigInt::OfValue(b)) == 0;
}

bool EqualItems(const ListObject& a, const ListObject& b, int depth) {
  if (a.count != b.count) return false;
  for (size_t i = 0; i < a.count; ++i) {
    if (!Equal(a.items[i], b.items[i], depth + 1)) return false;
  }
  return true;
}

bool EqualDicts(const DictObject& a, const DictObject& b, int depth) {
  if (a.count != b.count) return false;
  for (size_t i = 0; i < a.count; ++i) {
    const Value* other = b.Find(a.entries[i].key);
    if (other == nullptr || !Equal(a.entries[i].value, *other, depth + 1)) return false;
  }
  return true;
}

}  // namespace

void TextBuilder::AppendPart(const Value& string, size_t begin, size_t end) {
  const std::string_view text = string.text();
  if (!(string.flags & kMixed)) {
    Append(text.substr(begin, end - begin), string.flags & kFromContext);
    return;
  }
  size_t at = 0;
  for (uint32_t i = 0; i < string.mixed->run_count && at < end; ++i) {
    const Run& run = string.mixed->runs[i];
    const size_t from = std::max(begin, at);
    const size_t to = std::min<size_t>(end, run.end);
    if (from < to) Append(text.substr(from, to - from), run.from_context);
    at = run.end;
  }
}

void* Arena::AllocSlow(size_t bytes) {
  if (bytes > kChunkBytes / 4) {
    bytes_ += bytes;
    chunks_.emplace_back(new char[bytes]);
    return chunks_.back().get();
  }
  bytes_ += kChunkBytes;
  chunks_.emplace_back(new char[kChunkBytes]);
  next_ = chunks_.back().get();
  end_ = next_ + kChunkBytes;
  char* at = next_;
  next_ += bytes;
  return at;
}

std::string_view Arena::Join(std::string_view left, std::string_view right) {
  for (Growing& g : growing_) {
    if (g.used == nullptr || g.used != left.data() + left.size()) continue;
    if (static_cast<size_t>(g.end - g.used) < right.size()) break;
    std::memcpy(g.used, right.data(), right.size());
    g.used += right.size();
    return {left.data(), left.size() + right.size()};
  }
  const size_t bytes = left.size() + right.size();
  const size_t room = bytes < kGrowBytesMin ? bytes : bytes * 2;
  char* at = static_cast<char*>(Alloc(room));
  if (!left.empty()) std::memcpy(at, left.data(), left.size());
  if (!right.empty()) std::memcpy(at + left.size(), right.data(), right.size());
  if (room > bytes) {
    growing_[growing_next_] = {at + bytes, at + room};
    growing_next_ = (growing_next_ + 1) % growing_.size();
  }
  return {at, bytes};
}

const Value* DictObject::FindText(std::string_view key) const {
  if (table == nullptr) {
    for (size_t i = 0; i < count; ++i) {
      const Value& k = entries[i].key;
      if (k.str() && k.bytes == key.size() && k.text() == key) return &entries[i].value;
    }
    return nullptr;
  }
  return Find(Value::View(key));
}

const Value* DictObject::Find(const Value& key) const {
  if (table == nullptr) {
    for (size_t i = 0; i < count; ++i) {
      if (Equal(entries[i].key, key)) return &entries[i].value;
    }
    return nullptr;
  }
  uint64_t hash = 0;
  if (!HashOf(key, hash)) return nullptr;
  for (size_t at = hash & (table_size - 1);; at = (at + 1) & (table_size - 1)) {
    if (table[at] == 0) return nullptr;
    const DictEntry& entry = entries[table[at] - 1];
    if (entry.hash == hash && Equal(entry.key, key)) return &entry.value;
  }
}

void DictObject::Set(Arena& arena, const Value& key, const Value& value) {
  if (const Value* old = Find(key)) {
    *const_cast<Value*>(old) = value;
    return;
  }
  if (count == capacity) {
    capacity = capacity == 0 ? 4 : capacity * 2;
    auto* grown = arena.Array<DictEntry>(capacity);
    std::copy(entries, entries + count, grown);
    entries = grown;
  }
  DictEntry& entry = entries[count++];
  entry.key = key;
  entry.value = value;
  if (count <= kLinearMax) return;
  const auto insert = [this](size_t index) {
    size_t at = entries[index].hash & (table_size - 1);
    while (table[at] != 0) at = (at + 1) & (table_size - 1);
    table[at] = static_cast<uint32_t>(index + 1);
  };
  HashOf(key, entry.hash);
  if (count * 2 <= table_size) {
    insert(count - 1);
    return;
  }
  table_size = table_size == 0 ? 32 : table_size * 4;
  table = arena.Array<uint32_t>(table_size);
  std::fill(table, table + table_size, 0);
  for (size_t i = 0; i < count; ++i) {
    if (i < kLinearMax) HashOf(entries[i].key, entries[i].hash);
    insert(i);
  }
}

Value Finish(Arena& arena, const TextBuilder& builder, bool markup) {
  const std::string_view text = arena.Copy(builder.text());
  const std::vector<Run>& runs = builder.runs();
  const uint8_t mark = markup ? kMarkup : 0;
  if (runs.size() <= 1) {
    return Value::View(text, mark | (!runs.empty() && runs[0].from_context ? kFromContext : 0));
  }
  auto* mixed = arena.New<MixedText>();
  auto* copy = arena.Array<Run>(runs.size());
  std::copy(runs.begin(), runs.end(), copy);
  mixed->chars = text.data();
  mixed->runs = copy;
  mixed->run_count = static_cast<uint32_t>(runs.size());
  Value v = Value::View(text, mark | kMixed);
  v.mixed = mixed;
  return v;
}

Value Substring(Arena& arena, const Value& string, size_t begin, size_t end) {
  if (!(string.flags & kMixed)) {
    return Value::View(string.text().substr(begin, end - begin), string.flags);
  }
  if (begin == 0 && end == string.bytes) return string;
  const MixedText& whole = *string.mixed;
  const uint8_t mark = string.flags & kMarkup;
  const std::string_view text = string.text().substr(begin, end - begin);
  if (begin == end) return Value::View(text, mark);
  uint32_t first = 0;
  while (whole.runs[first].end <= begin) ++first;
  uint32_t last = first;
  while (whole.runs[last].end < end) ++last;
  if (first == last) {
    return Value::View(text, mark | (whole.runs[first].from_context ? kFromContext : 0));
  }
  auto* mixed = arena.New<MixedText>();
  auto* runs = arena.Array<Run>(last - first + 1);
  for (uint32_t i = first; i <= last; ++i) {
    runs[i - first].from_context = whole.runs[i].from_context;
    runs[i - first].end = static_cast<uint32_t>(std::min<size_t>(whole.runs[i].end, end) - begin);
  }
  mixed->chars = text.data();
  mixed->runs = runs;
  mixed->run_count = last - first + 1;
  Value v = Value::View(text, mark | kMixed);
  v.mixed = mixed;
  return v;
}

Value MakeList(Arena& arena, const std::vector<Value>& items, Kind kind) {
  auto* list = arena.New<ListObject>();
  list->items = arena.Array<Value>(items.size());
  list->count = items.size();
  std::copy(items.begin(), items.end(), list->items);
  Value v = Value::Of(kind);
  v.list = list;
  return v;
}

Value MakePair(Arena& arena, const Value& first, const Value& second) {
  auto* list = arena.New<ListObject>();
  list->items = arena.Array<Value>(2);
  list->count = 2;
  list->items[0] = first;
  list->items[1] = second;
  Value v = Value::Of(Kind::kTuple);
  v.list = list;
  return v;
}

Value MakeDict(Arena& arena) {
  Value v = Value::Of(Kind::kDict);
  v.dict = arena.New<DictObject>();
  return v;
}

bool Equal(const Value& a, const Value& b, int depth) {
  if (depth > kEqualDepthMax) return false;
  if (a.number() && b.number()) return EqualNumbers(a, b);
  if (a.kind != b.kind) return false;
  switch (a.kind) {
    case Kind::kStr:
      return a.bytes == b.bytes && a.text() == b.text();
    case Kind::kNone:
    case Kind::kUndefined:
      return true;
    case Kind::kList:
    case Kind::kTuple:
      return a.list == b.list || EqualItems(*a.list, *b.list, depth);
    case Kind::kDict:
      return a.dict == b.dict || EqualDicts(*a.dict, *b.dict, depth);
    case Kind::kRange:
      return a.range->count == b.range->count &&
             (a.range->count == 0 || (a.range->start == b.range->start &&
                                      (a.range->count == 1 || a.range->step == b.range->step)));
    case Kind::kDictView: {
      if (a.view->of != b.view->of || a.view->of == ViewOf::kValues) return a.view == b.view;
      if (a.view->dict->count != b.view->dict->count) return false;
      for (size_t i = 0; i < a.view->dict->count; ++i) {
        const DictEntry& entry = a.view->dict->entries[i];
        const Value* other = b.view->dict->Find(entry.key);
        if (other == nullptr) return false;
        if (a.view->of == ViewOf::kItems && !Equal(entry.value, *other, depth + 1)) return false;
      }
      return true;
    }
    default:
      return a.integer == b.integer;  // the same object
  }
}

bool HashOf(const Value& v, uint64_t& hash) {
  switch (v.kind) {
    case Kind::kList:
    case Kind::kDict:
    case Kind::kSlice:
    case Kind::kDictView:
      return false;
    case Kind::kTuple: {
      hash = v.list->count;
      for (size_t i = 0; i < v.list->count; ++i) {
        uint64_t item = 0;
        if (!HashOf(v.list->items[i], item)) return false;
        hash = absl::HashOf(hash, item);
      }
      return true;
    }
    case Kind::kStr:
      hash = absl::HashOf(v.text());
      return true;
    case Kind::kBool:
    case Kind::kInt:
    case Kind::kBigInt:
    case Kind::kFloat:
      hash = HashNumber(v);
      return true;
    case Kind::kUndefined:
    case Kind::kNone:
      hash = static_cast<uint64_t>(v.kind) * 0x9E3779B97F4A7C15u;
      return true;
    case Kind::kRange:
      hash = absl::HashOf(v.range->count);
      return true;
    default:
      hash = absl::HashOf(v.integer);
      return true;
  }
}

bool Truth(const Value& v) {
  switch (v.kind) {
    case Kind::kMissing:
    case Kind::kError:
    case Kind::kUndefined:
    case Kind::kNone:
      return false;
    case Kind::kBool:
    case Kind::kInt:
      return v.integer != 0;
    case Kind::kFloat:
      return v.real != 0;
    case Kind::kStr:
      return v.bytes != 0;
    case Kind::kList:
    case Kind::kTuple:
      return v.list->count != 0 || v.list->of == ListOf::kGenerator;
    case Kind::kDict:
      return v.dict->count != 0;
    case Kind::kRange:
      return v.range->count != 0;
    case Kind::kDictView:
      return v.view->dict->count != 0;
    default:
      return true;
  }
}

}  // namespace tessera::tokenizer::jinja
