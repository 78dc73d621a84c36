#ifndef TESSERA_TOKENIZER_CHAT_TEMPLATE_CHAT_TEMPLATE_SET_H_
#define TESSERA_TOKENIZER_CHAT_TEMPLATE_CHAT_TEMPLATE_SET_H_

#include <cstddef>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "tokenizer/chat_template/chat_template.h"

namespace tessera::tokenizer {

// The templates of one model by name, and a small cache of templates that callers sent.
// Threading: all methods may be called from any thread.
class ChatTemplateSet {
 public:
  // Compiled templates of callers that are kept; the one used longest ago goes first.
  static constexpr size_t kCallerTemplatesMax = 32;
  static constexpr size_t kCallerTemplateBytesMax = size_t{256} << 10;

  struct Named {
    std::string name;  // "default", "tool_use", ...
    std::string source;
  };

  // Compiles all. The names must differ. `callers_may_send` opens CallerTemplate.
  // Errors: kInvalidArgument: a template does not compile, or a name comes twice.
  static absl::StatusOr<std::unique_ptr<ChatTemplateSet>> Create(
      const std::vector<Named>& templates, bool callers_may_send);

  // As transformers chooses: "tool_use" if there are tools and the model has it, else "default",
  // else the only one. Errors: kFailedPrecondition if none fits.
  absl::StatusOr<std::shared_ptr<const ChatTemplate>> Select(bool has_tools) const;

  // Null if there is no template of this name.
  std::shared_ptr<const ChatTemplate> Find(std::string_view name) const;

  // The compiled form of a caller's own template, from the cache if it was seen before.
  // Errors: kPermissionDenied if callers may not send templates; kInvalidArgument if it is longer
  // than kCallerTemplateBytesMax or does not compile. The payload "tessera.field" is
  // "chat_template".
  absl::StatusOr<std::shared_ptr<const ChatTemplate>> CallerTemplate(std::string_view source);

 private:
  struct Cached {
    std::string source;
    std::shared_ptr<const ChatTemplate> compiled;
  };

  explicit ChatTemplateSet(bool callers_may_send) : callers_may_send_(callers_may_send) {}

  const bool callers_may_send_;
  std::vector<std::pair<std::string, std::shared_ptr<const ChatTemplate>>> named_;
  absl::Mutex mutex_;
  std::list<Cached> recent_ ABSL_GUARDED_BY(mutex_);  // the last used first
  std::unordered_map<std::string_view, std::list<Cached>::iterator> by_source_
      ABSL_GUARDED_BY(mutex_);  // keys are views into recent_; the map hashes and compares them
};

}  // namespace tessera::tokenizer

#endif  // TESSERA_TOKENIZER_CHAT_TEMPLATE_CHAT_TEMPLATE_SET_H_
