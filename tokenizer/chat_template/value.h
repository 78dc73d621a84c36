#ifndef TESSERA_TOKENIZER_CHAT_TEMPLATE_VALUE_H_
#define TESSERA_TOKENIZER_CHAT_TEMPLATE_VALUE_H_

// The values of the template language. All of them are trivially copyable and live in an arena
// that is dropped as a whole when the render ends; nothing is freed one by one, so cycles and
// deep nesting are harmless. Strings are views: a slice or a split copies nothing.
// Threading: an arena belongs to one thread; values of a compiled template are read only.

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace tessera::tokenizer::jinja {

enum class Kind : uint8_t {
  kError,    // evaluation failed; the interpreter holds the error
  kMissing,  // a variable slot without a value
  kUndefined,
  kNone,
  kBool,
  kInt,
  kBigInt,
  kFloat,
  kStr,
  kList,
  kTuple,
  kDict,
  kRange,
  kDictView,
  kIterator,
  kMethod,
  kBuiltin,
  kMacro,
  kLoop,
  kNamespace,
  kCycler,
  kJoiner,
  kBlocks,    // `self`
  kBlockRef,  // `self.name`
  kSlice,
};

// Where the text of a value came from; for values that are not strings, where they came from.
inline constexpr uint8_t kFromContext = 1;
inline constexpr uint8_t kMixed = 2;   // strings only: the runs say which part is which
inline constexpr uint8_t kMarkup = 4;  // strings only: markupsafe.Markup

struct UndefinedObject;
struct BigIntObject;
struct ListObject;
struct DictObject;
struct RangeObject;
struct DictViewObject;
struct MixedText;
class Iterator;
struct MethodObject;
struct BuiltinSpec;
struct MacroObject;
struct LoopObject;
struct NamespaceObject;
struct CyclerObject;
struct JoinerObject;
struct BlockRefObject;
struct SliceObject;

struct Value {
  union {
    int64_t integer;
    double real;
    const char* chars;
    const MixedText* mixed;
    UndefinedObject* undefined;
    BigIntObject* big;
    ListObject* list;
    DictObject* dict;
    RangeObject* range;
    DictViewObject* view;
    Iterator* iterator;
    MethodObject* method;
    const BuiltinSpec* builtin;
    MacroObject* macro;
    LoopObject* loop;
    NamespaceObject* space;
    CyclerObject* cycler;
    JoinerObject* joiner;
    BlockRefObject* block;
    SliceObject* slice;
  };
  uint32_t bytes = 0;  // of a string
  Kind kind = Kind::kMissing;
  uint8_t flags = 0;

  Value() : integer(0) {}

  bool failed() const { return kind == Kind::kError; }
  bool missing() const { return kind == Kind::kMissing; }
  bool undef() const { return kind == Kind::kUndefined; }
  bool none() const { return kind == Kind::kNone; }
  bool str() const { return kind == Kind::kStr; }
  bool markup() const { return kind == Kind::kStr && (flags & kMarkup); }
  bool is_true() const { return kind == Kind::kBool && integer != 0; }
  bool sequence() const { return kind == Kind::kList || kind == Kind::kTuple; }
  // int or bool, in 64 bits
  bool small_int() const { return kind == Kind::kInt || kind == Kind::kBool; }
  bool integral() const { return small_int() || kind == Kind::kBigInt; }
  bool number() const { return integral() || kind == Kind::kFloat; }
  std::string_view text() const;
  uint8_t origin() const { return flags & (kFromContext | kMixed); }

  static Value Of(Kind kind) {
    Value v;
    v.kind = kind;
    return v;
  }
  static Value None() { return Of(Kind::kNone); }
  static Value Error() { return Of(Kind::kError); }
  static Value Bool(bool b) {
    Value v = Of(Kind::kBool);
    v.integer = b;
    return v;
  }
  static Value Int(int64_t i) {
    Value v = Of(Kind::kInt);
    v.integer = i;
    return v;
  }
  static Value Float(double d) {
    Value v = Of(Kind::kFloat);
    v.real = d;
    return v;
  }
  // The text must outlive the value: in the arena, the compiled template or the context.
  static Value View(std::string_view text, uint8_t flags = 0) {
    Value v = Of(Kind::kStr);
    v.chars = text.data();
    v.bytes = static_cast<uint32_t>(text.size());
    v.flags = flags;
    return v;
  }
};
static_assert(sizeof(Value) == 16 && std::is_trivially_copyable_v<Value>);

// A run of bytes of one origin, ending at `end`.
struct Run {
  uint32_t end;
  bool from_context;
};

struct MixedText {
  const char* chars;
  const Run* runs;
  uint32_t run_count;
};

inline std::string_view Value::text() const {
  return {flags & kMixed ? mixed->chars : chars, bytes};
}

// Text under construction, with the origin of each byte.
class TextBuilder {
 public:
  void Append(std::string_view text, bool from_context) {
    if (text.empty()) return;
    text_.append(text);
    if (runs_.empty() || runs_.back().from_context != from_context) {
      runs_.push_back({static_cast<uint32_t>(text_.size()), from_context});
    } else {
      runs_.back().end = static_cast<uint32_t>(text_.size());
    }
  }
  void Append(const Value& string) { AppendPart(string, 0, string.bytes); }
  // Bytes [begin, end) of a string, each with its own origin.
  void AppendPart(const Value& string, size_t begin, size_t end);
  void Clear() {
    text_.clear();
    runs_.clear();
  }
  void Reserve(size_t bytes) { text_.reserve(bytes); }
  const std::string& text() const { return text_; }
  std::string& mutable_text() { return text_; }
  const std::vector<Run>& runs() const { return runs_; }

 private:
  std::string text_;
  std::vector<Run> runs_;
};

// Bump allocator. Alloc never fails, but `over()` says that the limit is passed; the interpreter
// looks at it at every step and before anything large.
class Arena {
 public:
  explicit Arena(size_t bytes_max) : bytes_max_(bytes_max) {}
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  void* Alloc(size_t bytes) {
    bytes = (bytes + 7) & ~size_t{7};
    if (bytes > static_cast<size_t>(end_ - next_)) return AllocSlow(bytes);
    char* at = next_;
    next_ += bytes;
    return at;
  }
  template <typename T>
  T* New() {
    static_assert(std::is_trivially_destructible_v<T>);
    return new (Alloc(sizeof(T))) T();
  }
  template <typename T>
  T* Array(size_t n) {
    static_assert(std::is_trivially_destructible_v<T>);
    T* items = static_cast<T*>(Alloc(sizeof(T) * n));
    for (size_t i = 0; i < n; ++i) new (items + i) T();
    return items;
  }
  bool over() const { return bytes_ > bytes_max_; }
  bool CanTake(size_t bytes) const { return bytes <= bytes_max_ && bytes_ <= bytes_max_ - bytes; }

  std::string_view Copy(std::string_view text) {
    if (text.empty()) return {};
    char* at = static_cast<char*>(Alloc(text.size()));
    std::memcpy(at, text.data(), text.size());
    return {at, text.size()};
  }
  // `left` + `right`; in place behind `left` if it was the last thing grown there, so that a
  // template that collects its output piece by piece stays linear.
  std::string_view Join(std::string_view left, std::string_view right);

 private:
  static constexpr size_t kChunkBytes = size_t{64} << 10;
  static constexpr size_t kGrowBytesMin = 512;
  struct Growing {
    char* used = nullptr;
    char* end = nullptr;
  };

  void* AllocSlow(size_t bytes);

  const size_t bytes_max_;
  size_t bytes_ = 0;
  char* next_ = nullptr;
  char* end_ = nullptr;
  std::vector<std::unique_ptr<char[]>> chunks_;
  std::array<Growing, 4> growing_;
  size_t growing_next_ = 0;
};

// What Python would hold where this engine holds a list of items.
enum class ListOf : uint8_t {
  kItems,      // a list or a tuple
  kView,       // dict_items, dict_keys, dict_values: no index, printed with its name
  kRange,      // printed as range(a, b)
  kGenerator,  // always true, without length or index, empty after one walk
};

struct ListObject {
  Value* items = nullptr;
  size_t count = 0;
  ListOf of = ListOf::kItems;
  std::string_view shown;  // kView: the type's name; kRange: the whole text
  bool group = false;      // a tuple of the groupby filter: fields grouper and list
};

struct DictEntry {
  Value key;
  Value value;
  uint64_t hash = 0;
};

// Keeps insertion order; linear up to kLinearMax entries, hashed beyond.
struct DictObject {
  static constexpr size_t kLinearMax = 8;
  DictEntry* entries = nullptr;
  size_t count = 0;
  size_t capacity = 0;
  uint32_t* table = nullptr;  // entry index + 1, 0 is free; power of two, at most half full
  size_t table_size = 0;

  const Value* FindText(std::string_view key) const;
  const Value* Find(const Value& key) const;  // key must be hashable
  void Set(Arena& arena, const Value& key, const Value& value);
};

struct RangeObject {
  int64_t start = 0;
  int64_t step = 1;
  int64_t count = 0;
};

enum class ViewOf : uint8_t { kKeys, kValues, kItems };

struct DictViewObject {
  DictObject* dict = nullptr;
  ViewOf of = ViewOf::kKeys;
  uint8_t origin = 0;
};

struct SliceObject {
  Value start, stop, step;
};

struct UndefinedObject {
  std::string_view hint;
  Value owner;  // kMissing if there is none
  Value name;
  bool security = false;
};

struct BigIntObject {
  const uint32_t* limbs = nullptr;  // least first, the last not 0
  uint32_t count = 0;
  bool negative = false;
};

// A string value in the arena with the runs of the builder.
Value Finish(Arena& arena, const TextBuilder& builder, bool markup = false);
// Bytes [begin, end) of a string, keeping its origin; no copy.
Value Substring(Arena& arena, const Value& string, size_t begin, size_t end);
Value MakeList(Arena& arena, const std::vector<Value>& items, Kind kind = Kind::kList);
Value MakePair(Arena& arena, const Value& first, const Value& second);
Value MakeDict(Arena& arena);

// Python's ==. Only values: never fails. `depth` guards against very deep nesting.
bool Equal(const Value& a, const Value& b, int depth = 0);
// Equal values have equal hashes. False if the value is not hashable (list, dict, slice).
bool HashOf(const Value& v, uint64_t& hash);
// Python's truth of a value.
bool Truth(const Value& v);

}  // namespace tessera::tokenizer::jinja

#endif  // TESSERA_TOKENIZER_CHAT_TEMPLATE_VALUE_H_
