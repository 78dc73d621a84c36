#include "tokenizer/chat_template/chat_template_set.h"

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "tokenizer/chat_template/chat_prompt.h"

namespace tessera::tokenizer {
namespace {

absl::Status FieldStatus(absl::StatusCode code, const std::string& message) {
  absl::Status status(code, absl::StrCat("chat_template: ", message));
  status.SetPayload(kFieldPayloadUrl, absl::Cord("chat_template"));
  return status;
}

}  // namespace

absl::StatusOr<std::unique_ptr<ChatTemplateSet>> ChatTemplateSet::Create(
    const std::vector<Named>& templates, bool callers_may_send) {
  std::unique_ptr<ChatTemplateSet> set(new ChatTemplateSet(callers_may_send));
  for (const Named& entry : templates) {
    if (set->Find(entry.name) != nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat("chat template ", entry.name, ": the name comes twice"));
    }
    absl::StatusOr<std::unique_ptr<const ChatTemplate>> compiled =
        ChatTemplate::Compile(entry.source, entry.name);
    if (!compiled.ok()) return compiled.status();
    set->named_.emplace_back(entry.name, *std::move(compiled));
  }
  return set;
}

std::shared_ptr<const ChatTemplate> ChatTemplateSet::Find(std::string_view name) const {
  for (const auto& [known, compiled] : named_) {
    if (known == name) return compiled;
  }
  return nullptr;
}

absl::StatusOr<std::shared_ptr<const ChatTemplate>> ChatTemplateSet::Select(bool has_tools) const {
  if (has_tools) {
    if (auto found = Find("tool_use")) return found;
  }
  if (auto found = Find("default")) return found;
  if (named_.size() == 1) return named_.front().second;
  return absl::FailedPreconditionError(
      named_.empty() ? "the model has no chat template"
                     : "the model has several chat templates and none is called default");
}

absl::StatusOr<std::shared_ptr<const ChatTemplate>> ChatTemplateSet::CallerTemplate(
    std::string_view source) {
  if (!callers_may_send_) {
    return FieldStatus(absl::StatusCode::kPermissionDenied,
                       "this server takes no templates from callers");
  }
  if (source.size() > kCallerTemplateBytesMax) {
    return FieldStatus(
        absl::StatusCode::kInvalidArgument,
        absl::StrCat("has ", source.size(), " bytes; the limit is ", kCallerTemplateBytesMax));
  }
  {
    absl::MutexLock lock(&mutex_);
    const auto found = by_source_.find(source);
    if (found != by_source_.end()) {
      recent_.splice(recent_.begin(), recent_, found->second);
      return found->second->compiled;
    }
  }
  // Compiled outside the lock; two callers may do the same work once.
  absl::StatusOr<std::unique_ptr<const ChatTemplate>> compiled =
      ChatTemplate::Compile(source, "chat_template");
  if (!compiled.ok()) {
    return FieldStatus(absl::StatusCode::kInvalidArgument,
                       std::string(compiled.status().message()));
  }
  std::shared_ptr<const ChatTemplate> shared = *std::move(compiled);
  absl::MutexLock lock(&mutex_);
  if (by_source_.contains(source)) return shared;
  if (recent_.size() >= kCallerTemplatesMax) {
    by_source_.erase(recent_.back().source);
    recent_.pop_back();
  }
  recent_.push_front({std::string(source), shared});
  by_source_.emplace(recent_.front().source, recent_.begin());
  return shared;
}

}  // namespace tessera::tokenizer
