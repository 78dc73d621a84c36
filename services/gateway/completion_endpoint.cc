#include "services/gateway/completion_endpoint.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "services/clients/channel.h"
#include "services/gateway/completion_reply.h"
#include "services/gateway/completion_request.h"

namespace tessera::gateway {
namespace {

using parser::v1::CompleteStreamResponse;
using services::Flow;
using tokenizer::v1::GenerateResponse;

constexpr std::string_view kPeer = "parser";

ReplyHead HeadFor(const Reply& reply) {
  return {.id = absl::StrCat("cmpl-", reply.context().request_id),
          .created_s = absl::ToUnixSeconds(reply.arrived())};
}

// The calls of one request, whose events come side by side.
class CompletionRelay final {
 public:
  CompletionRelay(std::shared_ptr<Reply> reply, const CompletionReply::Options& options)
      : prompts_running_(options.prompts),
        streams_(options.stream.stream),
        reply_(std::move(reply)),
        texts_(HeadFor(*reply_), options) {
    for (uint32_t i = 0; i < options.prompts; ++i) {
      calls_.push_back(std::make_shared<services::PendingCall>());
    }
  }

  services::PendingCall& call(uint32_t prompt) { return *calls_[prompt]; }
  void CancelAll() {
    for (const auto& call : calls_) call->Cancel();
  }
  void ResumeAll() {
    for (const auto& call : calls_) call->Resume();
  }

  Flow OnMessage(uint32_t prompt, const GenerateResponse& event) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    if (event.has_started()) {
      texts_.OnStarted(event.started());
    } else if (event.has_delta()) {
      texts_.OnDelta(prompt, event.delta(), out_);
    } else if (event.has_finished()) {
      texts_.OnFinished(event.finished());
      ++prompts_finished_;
    }
    if (!streams_ || out_.empty()) return Flow::kContinue;
    const bool room = reply_->Write(out_);
    out_.clear();
    return room ? Flow::kContinue : Flow::kPause;
  }

  void OnDone(const absl::Status& status) ABSL_LOCKS_EXCLUDED(mutex_) {
    bool failed = false;
    {
      absl::MutexLock lock(&mutex_);
      --prompts_running_;
      if (!status.ok()) {
        failed = true;
        reply_->Fail(services::PeerStatus(status, kPeer, reply_->streaming()));
      } else if (prompts_running_ == 0) {
        Complete();
      }
    }
    if (failed) CancelAll();
  }

 private:
  void Complete() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (prompts_finished_ != calls_.size()) {
      reply_->Fail(absl::InternalError("the parser ended a stream early"));
    } else if (streams_) {
      texts_.AppendEnd(out_);
      reply_->Write(out_);
      reply_->End();
    } else {
      reply_->Json(texts_.Whole());
    }
  }

  absl::Mutex mutex_;
  size_t prompts_running_ ABSL_GUARDED_BY(mutex_);
  size_t prompts_finished_ ABSL_GUARDED_BY(mutex_) = 0;
  const bool streams_;
  const std::shared_ptr<Reply> reply_;
  CompletionReply texts_ ABSL_GUARDED_BY(mutex_);
  std::string out_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::shared_ptr<services::PendingCall>> calls_;
};

}  // namespace

void AnswerCompletion(std::shared_ptr<Reply> reply, services::ParserClient& parser) {
  absl::StatusOr<CompletionCall> call = ReadCompletionRequest(reply->request().body);
  if (!call.ok()) return reply->Fail(call.status());
  const auto prompts = static_cast<uint32_t>(call->prompts.size());
  const auto relay = std::make_shared<CompletionRelay>(
      reply, CompletionReply::Options{.stream = call->stream,
                                      .logprobs = call->prompts.front().sampling().has_logprobs(),
                                      .prompts = prompts,
                                      .choices_per_prompt = call->choices_per_prompt});
  reply->SetEvents(
      {.on_gone = [relay] { relay->CancelAll(); }, .on_writable = [relay] { relay->ResumeAll(); }});
  for (uint32_t i = 0; i < prompts; ++i) {
    parser::v1::CompleteStreamRequest request;
    *request.mutable_generate() = std::move(call->prompts[i]);
    relay->call(i).Set(parser.CompleteStream(
        reply->context(), std::move(request),
        {.on_message =
             [relay, i](CompleteStreamResponse& message) {
               return relay->OnMessage(i, message.event());
             },
         .on_done =
             [relay, i, prompts](const absl::Status& status) {
               relay->OnDone(prompts == 1 ? status : InListedPrompt(status, i));
             }}));
  }
}

}  // namespace tessera::gateway
