#include "services/gateway/parse_endpoints.h"

#include <optional>
#include <string>
#include <utility>

#include "services/clients/channel.h"
#include "services/gateway/chat_reply.h"
#include "services/gateway/chat_request.h"
#include "services/gateway/json_body.h"
#include "services/gateway/json_text.h"

namespace tessera::gateway {
namespace {

constexpr std::string_view kPeer = "parser";

// Writes `text` or null.
template <typename Message>
void AppendContent(std::string& out, const Message& message) {
  out += "{\"content\":";
  if (message.has_content()) {
    AppendJsonString(out, message.content());
  } else {
    out += "null";
  }
}

// Both bodies have these.
template <typename Request>
void ReadTextAndFormat(JsonFields& fields, Request& request) {
  if (std::optional<std::string> text = fields.String("text")) {
    request.set_text(*std::move(text));
  } else {
    fields.Fail("text", "is missing; give the model's raw output");
  }
  request.set_format(fields.String("format").value_or(""));
}

// Sends `request` down with `call` and the answer, written by `write`, up.
template <typename Response, typename Request, typename Call, typename Write>
void Relay(std::shared_ptr<Reply> reply, absl::StatusOr<Request> request, Call call, Write write) {
  if (!request.ok()) return reply->Fail(request.status());
  const auto below = std::make_shared<services::PendingCall>();
  reply->SetEvents({.on_gone = [below] { below->Cancel(); }, .on_writable = {}});
  const services::CallContext context = reply->context();
  below->Set(call(context, *std::move(request),
                  [reply = std::move(reply), write](const absl::StatusOr<Response>& response) {
                    if (!response.ok()) {
                      return reply->Fail(services::PeerStatus(response.status(), kPeer,
                                                              /*sent_any=*/false));
                    }
                    reply->Json(write(*response));
                  }));
}

}  // namespace

absl::StatusOr<parser::v1::ParseReasoningRequest> ReadParseReasoning(std::string_view body) {
  const absl::StatusOr<nlohmann::ordered_json> root = ParseJsonBody(body);
  if (!root.ok()) return root.status();
  JsonFields fields(*root, "");
  parser::v1::ParseReasoningRequest request;
  ReadTextAndFormat(fields, request);
  if (const auto thinking = fields.Bool("enable_thinking")) request.set_enable_thinking(*thinking);
  if (!fields.status().ok()) return fields.status();
  return request;
}

absl::StatusOr<parser::v1::ParseToolCallsRequest> ReadParseFunctionCall(std::string_view body) {
  const absl::StatusOr<nlohmann::ordered_json> root = ParseJsonBody(body);
  if (!root.ok()) return root.status();
  JsonFields fields(*root, "");
  parser::v1::ParseToolCallsRequest request;
  ReadTextAndFormat(fields, request);
  ReadTools(fields, body, *request.mutable_tools());
  if (request.tools().empty()) {
    fields.Fail("tools", "is empty; give the tools that the model was shown");
  }
  if (!fields.status().ok()) return fields.status();
  return request;
}

void AnswerParseReasoning(std::shared_ptr<Reply> reply, services::ParserClient& parser,
                          ReasoningField reasoning_field) {
  using Response = parser::v1::ParseReasoningResponse;
  auto request = ReadParseReasoning(reply->request().body);
  Relay<Response>(
      std::move(reply), std::move(request),
      [&parser](const auto& context, auto request, auto done) {
        return parser.ParseReasoning(context, std::move(request), std::move(done));
      },
      [reasoning_field](const Response& response) {
        std::string out;
        AppendContent(out, response);
        AppendReasoning(out, reasoning_field,
                        response.has_reasoning() ? &response.reasoning() : nullptr);
        return out + '}';
      });
}

void AnswerParseFunctionCall(std::shared_ptr<Reply> reply, services::ParserClient& parser) {
  using Response = parser::v1::ParseToolCallsResponse;
  auto request = ReadParseFunctionCall(reply->request().body);
  Relay<Response>(
      std::move(reply), std::move(request),
      [&parser](const auto& context, auto request, auto done) {
        return parser.ParseToolCalls(context, std::move(request), std::move(done));
      },
      [](const Response& response) {
        std::string out;
        AppendContent(out, response);
        out += ",\"tool_calls\":[";
        for (int i = 0; i < response.tool_calls_size(); ++i) {
          if (i != 0) out += ',';
          AppendToolCall(out, response.tool_calls(i));
        }
        return out + "]}";
      });
}

}  // namespace tessera::gateway
