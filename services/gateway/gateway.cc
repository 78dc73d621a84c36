#include "services/gateway/gateway.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "services/common/field_error.h"
#include "services/common/metrics.h"
#include "services/common/version.h"
#include "services/gateway/chat_endpoint.h"
#include "services/gateway/completion_endpoint.h"
#include "services/gateway/json_text.h"
#include "services/gateway/openai_error.h"
#include "services/gateway/parse_endpoints.h"

namespace tessera::gateway {
namespace {

constexpr std::string_view kModelsPath = "/v1/models";

enum class Endpoint : uint8_t {
  kChat,
  kCompletion,
  kParseReasoning,
  kParseFunctionCall,
  kModels,
  kHealth,
  kLive,
  kMetrics,
  kVersion,
};

struct Route {
  std::string_view path;
  Endpoint endpoint;
  std::string_view method;  // GET implies HEAD
};

constexpr Route kRoutes[] = {
    {"/v1/chat/completions", Endpoint::kChat, "POST"},
    {"/v1/completions", Endpoint::kCompletion, "POST"},
    {"/parse/reasoning", Endpoint::kParseReasoning, "POST"},
    {"/parse/function_call", Endpoint::kParseFunctionCall, "POST"},
    {kModelsPath, Endpoint::kModels, "GET"},
    {"/health", Endpoint::kHealth, "GET"},
    {"/live", Endpoint::kLive, "GET"},
    {"/metrics", Endpoint::kMetrics, "GET"},
    {"/version", Endpoint::kVersion, "GET"},
};

const Route* FindRoute(std::string_view path) {
  // Clients that are given a base URL with a slash at its end.
  while (path.size() > 1 && path.back() == '/') path.remove_suffix(1);
  for (const Route& route : kRoutes) {
    if (path == route.path) return &route;
    if (route.endpoint == Endpoint::kModels && path.size() > kModelsPath.size() + 1 &&
        path.substr(0, kModelsPath.size()) == kModelsPath && path[kModelsPath.size()] == '/') {
      return &route;
    }
  }
  return nullptr;
}

std::string PathList() {
  std::string list;
  for (const Route& route : kRoutes) {
    absl::StrAppend(&list, list.empty() ? "" : ", ", std::string(route.method), " ",
                    std::string(route.path));
  }
  return list;
}

// For probes and scrapers, which are neither counted nor logged.
void RespondPlain(HttpExchange& exchange, int status, std::string body,
                  std::string content_type = "application/json") {
  exchange.Respond(
      {.status = status, .content_type = std::move(content_type), .body = std::move(body)});
}

}  // namespace

Gateway::Gateway(Parts parts)
    : parts_(std::move(parts)),
      metrics_(parts_.registry),
      watch_(parts_.parser, [this](bool serving) {
        parts_.log.Info(serving ? "serving" : "not serving: the parser cannot be reached");
        if (parts_.serving_changed) parts_.serving_changed(serving);
      }) {}

Gateway::~Gateway() { running_.AwaitNone(); }

void Gateway::Handle(std::shared_ptr<HttpExchange> exchange) {
  const HttpRequest& request = exchange->request();
  const ReplyTools tools{parts_.log, parts_.clock, parts_.ids, metrics_, running_};
  const Route* const route = FindRoute(request.path);
  if (route == nullptr) {
    return Reply(std::move(exchange), "unknown", Vocabulary::kOther, tools)
        .Refuse(HttpError(404, "not_found",
                          absl::StrCat("there is nothing at ", request.path.substr(0, 256),
                                       "; the endpoints are ", PathList())));
  }
  const bool allowed =
      request.method == route->method || (route->method == "GET" && request.method == "HEAD");
  if (!allowed) {
    return Reply(std::move(exchange), "unknown", Vocabulary::kOther, tools)
        .Refuse(
            HttpError(405, "method_not_allowed",
                      absl::StrCat(std::string(route->path), " takes ", std::string(route->method),
                                   ", not ", request.method.substr(0, 32))),
            {{"allow", std::string(route->method)}});
  }
  switch (route->endpoint) {
    case Endpoint::kChat:
      return AnswerChat(
          std::make_shared<Reply>(std::move(exchange), "chat", Vocabulary::kChat, tools),
          parts_.parser, parts_.reasoning_field);
    case Endpoint::kCompletion:
      return AnswerCompletion(std::make_shared<Reply>(std::move(exchange), "completion",
                                                      Vocabulary::kCompletion, tools),
                              parts_.parser);
    case Endpoint::kParseReasoning:
      return AnswerParseReasoning(std::make_shared<Reply>(std::move(exchange), "parse_reasoning",
                                                          Vocabulary::kOther, tools),
                                  parts_.parser, parts_.reasoning_field);
    case Endpoint::kParseFunctionCall:
      return AnswerParseFunctionCall(
          std::make_shared<Reply>(std::move(exchange), "parse_function_call", Vocabulary::kOther,
                                  tools),
          parts_.parser);
    case Endpoint::kModels: {
      const std::string name =
          request.path.substr(std::min(request.path.size(), kModelsPath.size() + 1));
      Reply reply(std::move(exchange), "models", Vocabulary::kOther, tools);
      return AnswerModels(reply, name);
    }
    case Endpoint::kHealth:
      return AnswerHealth(*exchange);
    case Endpoint::kLive:
      return RespondPlain(*exchange, 200, "{\"status\":\"live\"}");
    case Endpoint::kMetrics:
      return AnswerMetrics(*exchange);
    case Endpoint::kVersion:
      return RespondPlain(*exchange, 200,
                          absl::StrCat("{\"version\":\"", services::kVersion, "\"}"));
  }
}

void Gateway::AnswerHealth(HttpExchange& exchange) const {
  if (Serving()) return RespondPlain(exchange, 200, "{\"status\":\"serving\"}");
  RespondPlain(exchange, 503,
               draining_ ? "{\"status\":\"draining\"}" : "{\"status\":\"not serving\"}");
}

void Gateway::AnswerMetrics(HttpExchange& exchange) {
  if (const HttpServer* const server = server_) metrics_.Update(server->counters());
  RespondPlain(exchange, 200, services::MetricsText(parts_.registry),
               "text/plain; version=0.0.4; charset=utf-8");
}

void Gateway::AnswerModels(Reply& reply, std::string_view name) const {
  const std::optional<ServedModel> model = watch_.model();
  if (!model.has_value()) {
    return reply.Fail(absl::UnavailableError("the model is not known yet; try again"));
  }
  const std::string asked(name);
  if (!asked.empty() && asked != model->name) {
    return reply.Fail(services::FieldError(
        absl::StatusCode::kNotFound, "model",
        absl::StrCat("is \"", asked.substr(0, 256), "\"; this server has \"", model->name, "\"")));
  }
  std::string entry = "{\"id\":";
  AppendJsonString(entry, model->name);
  entry += ",\"object\":\"model\",\"created\":";
  AppendJsonInteger(entry, absl::ToUnixSeconds(reply.arrived()));
  entry += ",\"owned_by\":\"tessera\",\"max_model_len\":";
  AppendJsonInteger(entry, model->context_tokens_max);
  entry += '}';
  reply.Json(asked.empty() ? absl::StrCat("{\"object\":\"list\",\"data\":[", entry, "]}") : entry);
}

}  // namespace tessera::gateway
