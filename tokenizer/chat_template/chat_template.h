#ifndef TESSERA_TOKENIZER_CHAT_TEMPLATE_CHAT_TEMPLATE_H_
#define TESSERA_TOKENIZER_CHAT_TEMPLATE_CHAT_TEMPLATE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/civil_time.h"
#include "absl/time/time.h"
#include "nlohmann/json.hpp"

namespace tessera::tokenizer {

// Templates are written by strangers: a render stops with a named error at each of these.
struct RenderLimits {
  // Nesting of calls, blocks, expressions and values together ("depth").
  int depth_max = 1000;
  // Expressions evaluated, loop rounds and items touched by filters ("steps").
  int64_t steps_max = 50'000'000;
  // Bytes of the rendered text ("output_bytes").
  size_t output_bytes_max = size_t{64} << 20;
  // Bytes of all values made during one render ("value_bytes").
  size_t value_bytes_max = size_t{512} << 20;
  // Time on the monotonic clock of RenderClock ("time"). Without such a clock there is no limit.
  absl::Duration time_max = absl::Seconds(5);
};

// Time comes from outside, so that a render can be repeated.
struct RenderClock {
  // What strftime_now sees: local civil time without a zone, as Python's datetime.now().
  absl::CivilSecond now = absl::CivilSecond(1970, 1, 1);
  // Time since any fixed point, never going back; called now and then during a render.
  std::function<absl::Duration()> monotonic;
};

// A piece of the rendered text, in bytes.
struct TextSpan {
  size_t begin = 0;
  size_t end = 0;
  // True if the bytes came from the context (what users, tools and callers sent), false if the
  // template wrote them. Only template text may become control tokens when the caller asks for
  // control-token safety.
  bool from_context = false;
};

// The output of one {% generation %} block, in code points of the rendered text: [begin, end).
// As in transformers, a block inside a macro or a set block is placed where the output of the
// top level stood when the block ran.
struct GenerationSpan {
  size_t begin = 0;
  size_t end = 0;
};

struct Rendered {
  std::string text;
  // Covers the text without gap or overlap, in order; neighbours differ in from_context.
  std::vector<TextSpan> spans;
  std::vector<GenerationSpan> generation_spans;
};

// What went wrong, in Python's words.
struct TemplateError {
  // Python's class: "TemplateSyntaxError", "TemplateAssertionError" (unknown filter or test),
  // "TemplateError" (raise_exception), "UndefinedError", "SecurityError", "TypeError", ...;
  // "LimitError" for the limits above, which Python does not have.
  std::string type;
  // Python's message; for raise_exception exactly the template's text.
  std::string message;
  // 1-based; 0 if unknown.
  int line = 0;
  int column = 0;
  // For LimitError the name of the limit ("depth", "steps", ...), else empty.
  std::string limit;
};

// The error that a status of this package carries, if it does.
std::optional<TemplateError> TemplateErrorOf(const absl::Status& status);

// One chat template, compiled: Jinja2 as transformers sets it up (an immutable sandbox with
// trim_blocks and lstrip_blocks, loop controls, tojson without ASCII escapes, raise_exception,
// strftime_now, {% generation %}). The output is Python's, byte for byte.
// Ownership: holds all that it needs; the source may go after Compile.
// Threading: immutable; Render may run in any number of threads at once.
class ChatTemplate {
 public:
  // The longest source that Compile takes.
  static constexpr size_t kSourceBytesMax = size_t{1} << 20;

  // `name` is shown in messages ("default", "tool_use", a file name).
  // Errors: kInvalidArgument with a TemplateError (line and column set).
  // Cost: linear in the source; a template of 10 KB takes well under a millisecond.
  static absl::StatusOr<std::unique_ptr<const ChatTemplate>> Compile(std::string_view source,
                                                                     std::string_view name);

  ~ChatTemplate();
  ChatTemplate(const ChatTemplate&) = delete;
  ChatTemplate& operator=(const ChatTemplate&) = delete;

  // Renders with `context`, a JSON object of the variables (messages, tools,
  // add_generation_prompt, ...). Key order and the difference between 1 and 1.0 are kept. Strings
  // must be UTF-8. Borrows the context until it returns.
  // Errors: kInvalidArgument with a TemplateError; kResourceExhausted for the limit "time".
  // Cost: one pass; values are views into the context where they can be.
  absl::StatusOr<Rendered> Render(const nlohmann::ordered_json& context, const RenderLimits& limits,
                                  const RenderClock& clock) const;

  // Names that the template reads from the context (built-in functions not counted), sorted. A
  // chat_template_kwarg that is not among them has no effect.
  const std::vector<std::string>& variables() const;
  bool Reads(std::string_view variable) const;

  const std::string& name() const;

 private:
  struct Compiled;
  explicit ChatTemplate(std::unique_ptr<const Compiled> compiled);

  std::unique_ptr<const Compiled> compiled_;
};

}  // namespace tessera::tokenizer

#endif  // TESSERA_TOKENIZER_CHAT_TEMPLATE_CHAT_TEMPLATE_H_
