#include "services/parser/formats/fence_tracker.h"

#include "services/parser/formats/text_buffer.h"

namespace tessera::parser {
namespace {

constexpr size_t kIndentMax = 3;
constexpr size_t kRunMin = 3;

}  // namespace

void FenceTracker::Feed(std::string_view text) {
  size_t i = 0;
  while (i < text.size()) {
    if (phase_ == Phase::kOther) {  // the rest of an ordinary line says nothing
      const size_t newline = text.find('\n', i);
      if (newline == std::string_view::npos) return;
      i = newline;
    }
    FeedByte(text[i++]);
  }
}

void FenceTracker::FeedByte(char c) {
  if (!IsSpace(c)) {
    right_after_call_ = false;
    blank_ = false;
  }
  if (c == '\n') {
    EndLine();
    return;
  }
  switch (phase_) {
    case Phase::kIndent:
      if (c == ' ' && indent_ < kIndentMax) {
        ++indent_;
      } else if (c == '`' || c == '~') {
        phase_ = Phase::kRun;
        run_char_ = c;
        run_ = 1;
      } else {
        phase_ = IsSpace(c) ? Phase::kSpace : Phase::kOther;
      }
      return;
    case Phase::kRun:
      if (c == run_char_) {
        ++run_;
      } else if (run_ < kRunMin) {
        phase_ = Phase::kOther;
      } else if (!in_fence()) {
        phase_ = Phase::kInfo;
      } else {
        phase_ = IsSpace(c) ? Phase::kCloseTail : Phase::kOther;
      }
      return;
    case Phase::kInfo:
      if (run_char_ == '`' && c == '`') phase_ = Phase::kOther;
      return;
    case Phase::kSpace:
    case Phase::kCloseTail:
      if (!IsSpace(c)) phase_ = Phase::kOther;
      return;
    case Phase::kOther:
      return;
  }
}

void FenceTracker::EndLine() {
  const bool is_run = phase_ == Phase::kRun && run_ >= kRunMin;
  if (!in_fence()) {
    if (is_run || (phase_ == Phase::kInfo && run_ >= kRunMin)) {
      fence_char_ = run_char_;
      fence_run_ = run_;
    }
  } else if ((is_run || phase_ == Phase::kCloseTail) && run_char_ == fence_char_ &&
             run_ >= fence_run_) {
    fence_char_ = 0;
  }
  phase_ = Phase::kIndent;
  indent_ = 0;
  run_ = 0;
}

void FenceTracker::AfterCall() {
  *this = FenceTracker();
  blank_ = false;
  right_after_call_ = true;
}

}  // namespace tessera::parser
