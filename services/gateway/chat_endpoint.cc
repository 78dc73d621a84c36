#include "services/gateway/chat_endpoint.h"

#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "services/clients/channel.h"
#include "services/gateway/chat_reply.h"
#include "services/gateway/chat_request.h"

namespace tessera::gateway {
namespace {

using parser::v1::ChatStreamResponse;
using services::Flow;

constexpr std::string_view kPeer = "parser";

ReplyHead HeadFor(const Reply& reply) {
  return {.id = absl::StrCat("chatcmpl-", reply.context().request_id),
          .created_s = absl::ToUnixSeconds(reply.arrived())};
}

// One streamed chat between the client above and the call below. Its events come one at a time.
struct ChatRelay {
  ChatRelay(std::shared_ptr<Reply> reply, const ChatChunks::Options& options)
      : reply(std::move(reply)), chunks(HeadFor(*this->reply), options) {}

  Flow OnMessage(const ChatStreamResponse& message) {
    switch (message.event_case()) {
      case ChatStreamResponse::kStarted:
        chunks.AppendStarted(message.started(), out);
        return Flow::kContinue;  // goes out with the first delta
      case ChatStreamResponse::kDelta:
        chunks.AppendDelta(message.delta(), out);
        break;
      case ChatStreamResponse::kFinished:
        chunks.AppendFinished(message.finished(), out);
        finished = true;
        break;
      default:
        return Flow::kContinue;  // from a newer peer
    }
    const bool room = reply->Write(out);
    out.clear();
    return room ? Flow::kContinue : Flow::kPause;
  }

  void OnDone(const absl::Status& status) {
    if (finished) {
      reply->End();
    } else if (status.ok()) {
      reply->Fail(absl::InternalError("the parser ended the stream early"));
    } else {
      reply->Fail(services::PeerStatus(status, kPeer, reply->streaming()));
    }
  }

  const std::shared_ptr<Reply> reply;
  ChatChunks chunks;
  std::string out;
  bool finished = false;
};

void AnswerStreamed(std::shared_ptr<Reply> reply, services::ParserClient& parser, ChatCall call,
                    const ChatChunks::Options& options) {
  const auto below = std::make_shared<services::PendingCall>();
  reply->SetEvents(
      {.on_gone = [below] { below->Cancel(); }, .on_writable = [below] { below->Resume(); }});
  const services::CallContext context = reply->context();
  const auto relay = std::make_shared<ChatRelay>(std::move(reply), options);
  parser::v1::ChatStreamRequest request;
  *request.mutable_options() = std::move(call.options);
  below->Set(parser.ChatStream(
      context, std::move(request),
      {.on_message = [relay](ChatStreamResponse& message) { return relay->OnMessage(message); },
       .on_done = [relay](const absl::Status& status) { relay->OnDone(status); }}));
}

void AnswerWhole(std::shared_ptr<Reply> reply, services::ParserClient& parser, ChatCall call,
                 ReasoningField reasoning_field, bool logprobs) {
  const auto below = std::make_shared<services::PendingCall>();
  reply->SetEvents({.on_gone = [below] { below->Cancel(); }, .on_writable = {}});
  parser::v1::ChatRequest request;
  *request.mutable_options() = std::move(call.options);
  const services::CallContext context = reply->context();
  below->Set(parser.Chat(context, std::move(request),
                         [reply = std::move(reply), reasoning_field,
                          logprobs](const absl::StatusOr<parser::v1::ChatResponse>& response) {
                           if (!response.ok()) {
                             return reply->Fail(services::PeerStatus(response.status(), kPeer,
                                                                     /*sent_any=*/false));
                           }
                           ReplyHead head = HeadFor(*reply);
                           head.model = response->model();
                           reply->Json(ChatReply(head, *response, reasoning_field, logprobs));
                         }));
}

}  // namespace

void AnswerChat(std::shared_ptr<Reply> reply, services::ParserClient& parser,
                ReasoningField reasoning_field) {
  absl::StatusOr<ChatCall> call = ReadChatRequest(reply->request().body);
  if (!call.ok()) return reply->Fail(call.status());
  const engine::v1::SamplingParams& sampling = call->options.sampling();
  const bool logprobs = sampling.has_logprobs();
  if (!call->stream.stream) {
    return AnswerWhole(std::move(reply), parser, *std::move(call), reasoning_field, logprobs);
  }
  const ChatChunks::Options options{.reasoning_field = reasoning_field,
                                    .stream = call->stream,
                                    .logprobs = logprobs,
                                    .choices = sampling.has_n() ? sampling.n() : 1};
  AnswerStreamed(std::move(reply), parser, *std::move(call), options);
}

}  // namespace tessera::gateway
