#ifndef TESSERA_SERVICES_CLIENTS_FAKE_ENGINE_CLIENT_H_
#define TESSERA_SERVICES_CLIENTS_FAKE_ENGINE_CLIENT_H_

#include <functional>
#include <memory>
#include <utility>

#include "services/clients/engine_client.h"
#include "services/clients/fake_health.h"
#include "services/clients/fake_stream.h"

namespace tessera::services {

// A scripted engine for the tests of the hop above. Each answer is a function that a test may
// replace; a Generate script is handed the request and the stream to answer in, at once or later
// from any thread (keep the pointer).
class FakeEngineClient final : public EngineClient {
 public:
  using GenerateStream = FakeStream<engine::v1::GenerateResponse>;

  std::function<void(const CallContext&, const engine::v1::GenerateRequest&,
                     std::shared_ptr<GenerateStream>)>
      on_generate = [](const auto&, const auto&, auto stream) { stream->Finish(absl::OkStatus()); };
  std::function<absl::StatusOr<engine::v1::GetModelInfoResponse>()> on_get_model_info = [] {
    return engine::v1::GetModelInfoResponse();
  };
  std::function<absl::StatusOr<engine::v1::GetLoadResponse>()> on_get_load = [] {
    return engine::v1::GetLoadResponse();
  };
  std::function<absl::StatusOr<engine::v1::AbortResponse>(const engine::v1::AbortRequest&)>
      on_abort = [](const auto&) { return engine::v1::AbortResponse(); };
  FakeHealth health{true};

  std::shared_ptr<ClientCall> Generate(const CallContext& context,
                                       engine::v1::GenerateRequest request,
                                       GenerateEvents events) override {
    auto stream = std::make_shared<GenerateStream>(std::move(events));
    on_generate(context, request, stream);
    return stream;
  }
  std::shared_ptr<ClientCall> GetModelInfo(
      const CallContext&, UnaryDone<engine::v1::GetModelInfoResponse> done) override {
    done(on_get_model_info());
    return std::make_shared<Answered>();
  }
  std::shared_ptr<ClientCall> GetLoad(const CallContext&,
                                      UnaryDone<engine::v1::GetLoadResponse> done) override {
    done(on_get_load());
    return std::make_shared<Answered>();
  }
  std::shared_ptr<ClientCall> Abort(const CallContext&, engine::v1::AbortRequest request,
                                    UnaryDone<engine::v1::AbortResponse> done) override {
    done(on_abort(request));
    return std::make_shared<Answered>();
  }
  std::unique_ptr<HealthWatch> Watch(HealthChanged changed) override {
    return health.Watch(std::move(changed));
  }

 private:
  struct Answered final : ClientCall {
    void Resume() override {}
    void Cancel() override {}
  };
};

}  // namespace tessera::services

#endif  // TESSERA_SERVICES_CLIENTS_FAKE_ENGINE_CLIENT_H_
