#include "engine/server/admin_service.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "services/common/field_error.h"
#include "services/common/stream/unary.h"

namespace tessera::engine {
namespace {

// After the limit, requests are told so at once; this is for their events to go out.
constexpr absl::Duration kCutMax = absl::Seconds(5);

grpc::ServerUnaryReactor* NotBuilt(grpc::CallbackServerContext* context, const char* what) {
  return services::Reply(context, absl::UnimplementedError(absl::StrCat(
                                      what, " is not built yet; restart the engine instead")));
}

}  // namespace

AdminServiceAdapter::~AdminServiceAdapter() {
  std::thread drain;
  {
    absl::MutexLock lock(&mutex_);
    drain = std::move(drain_);
  }
  if (drain.joinable()) drain.join();
}

grpc::ServerUnaryReactor* AdminServiceAdapter::Drain(grpc::CallbackServerContext* context,
                                                     const v1::DrainRequest* request,
                                                     v1::DrainResponse* response) {
  absl::Duration limit = drain_limit_;
  if (request->has_limit()) {
    limit = absl::Seconds(request->limit().seconds()) + absl::Nanoseconds(request->limit().nanos());
    if (limit < absl::ZeroDuration() || limit > kDrainLimitMax) {
      return services::Reply(
          context, services::InvalidField(
                       "limit", absl::StrCat("is ", absl::FormatDuration(limit), "; give 0 to ",
                                             absl::FormatDuration(kDrainLimitMax))));
    }
  }
  absl::MutexLock lock(&mutex_);
  if (draining_) {
    return services::Reply(context, absl::FailedPreconditionError("a drain is under way"));
  }
  draining_ = true;
  if (drain_.joinable()) drain_.join();  // one that is over
  state_.Drain();
  log_.Info("drain begins", {{"limit_s", absl::ToDoubleSeconds(limit)}});
  auto reply = services::ServerReply::Start({});
  drain_ = std::thread([this, limit, response, reply] {
    const uint32_t cut = AwaitDrained(limit);
    response->set_requests_cut(cut);
    log_.Info("drained", {{"requests_cut", cut}});
    {
      absl::MutexLock inner(&mutex_);
      draining_ = false;
    }
    reply->Finish(absl::OkStatus());
  });
  return reply->reactor();
}

uint32_t AdminServiceAdapter::AwaitDrained(absl::Duration limit) {
  if (executor_.WaitIdle(limit)) return 0;
  const LoadFacts load = executor_.Load();
  executor_.EndAll(absl::UnavailableError("the engine drained and the limit has passed"));
  executor_.WaitIdle(kCutMax);
  return load.requests_running + load.requests_waiting;
}

grpc::ServerUnaryReactor* AdminServiceAdapter::Sleep(grpc::CallbackServerContext* context,
                                                     const v1::SleepRequest*, v1::SleepResponse*) {
  return NotBuilt(context, "Sleep");
}

grpc::ServerUnaryReactor* AdminServiceAdapter::Wake(grpc::CallbackServerContext* context,
                                                    const v1::WakeRequest*, v1::WakeResponse*) {
  return NotBuilt(context, "Wake");
}

grpc::ServerUnaryReactor* AdminServiceAdapter::LoadModel(grpc::CallbackServerContext* context,
                                                         const v1::LoadModelRequest*,
                                                         v1::LoadModelResponse*) {
  return NotBuilt(context, "LoadModel");
}

grpc::ServerUnaryReactor* AdminServiceAdapter::UnloadModel(grpc::CallbackServerContext* context,
                                                           const v1::UnloadModelRequest*,
                                                           v1::UnloadModelResponse*) {
  return NotBuilt(context, "UnloadModel");
}

}  // namespace tessera::engine
