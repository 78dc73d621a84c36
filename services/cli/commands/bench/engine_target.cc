#include "services/cli/commands/bench/engine_target.h"

#include <optional>
#include <random>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "services/clients/channel.h"
#include "services/common/call_context.h"
#include "services/common/status_map.h"

namespace tessera::cli {
namespace {

using engine::v1::GenerateResponse;

class EngineTarget final : public TrafficTarget {
 public:
  EngineTarget(services::EngineClient& engine, const EngineTraffic& traffic, uint32_t vocab_size)
      : engine_(engine), traffic_(traffic), vocab_size_(vocab_size) {}

  void Start(size_t index, TrafficEvents events) override {
    services::CallContext context;
    context.LimitTo(traffic_.timeout);
    const auto answer = std::make_shared<Answer>(Answer{.events = std::move(events), .end = {}});
    engine_.Generate(context, RequestOf(index),
                     {.on_message =
                          [answer](GenerateResponse& message) {
                            answer->OnMessage(message);
                            return services::Flow::kContinue;
                          },
                      .on_done = [answer](const absl::Status& status) { answer->OnDone(status); }});
  }

 private:
  struct Answer {
    void OnMessage(const GenerateResponse& message) {
      if (message.has_delta() && message.delta().tokens_size() > 0) {
        events.on_tokens(static_cast<uint32_t>(message.delta().tokens_size()));
      }
      if (!message.has_finished()) return;
      finished = true;
      end.prompt_tokens = message.finished().usage().prompt_tokens();
      end.output_tokens = message.finished().usage().completion_tokens();
    }
    void OnDone(const absl::Status& status) {
      if (!status.ok()) {
        end.error = std::string(services::CodeName(status.code()));
        end.message = std::string(status.message());
      } else if (!finished) {
        end.error = "cut";
        end.message = "the engine ended the stream early";
      }
      events.on_done(std::move(end));
    }

    TrafficEvents events;
    TrafficEnd end;
    bool finished = false;
  };

  engine::v1::GenerateRequest RequestOf(size_t index) const {
    std::seed_seq seeds{static_cast<uint32_t>(traffic_.seed),
                        static_cast<uint32_t>(traffic_.seed >> 32), static_cast<uint32_t>(index)};
    std::mt19937 random(seeds);
    engine::v1::GenerateRequest request;
    for (uint32_t i = 0; i < traffic_.prompt_tokens; ++i) {
      request.mutable_prompt()->add_ids(static_cast<uint32_t>(random() % vocab_size_));
    }
    engine::v1::SamplingParams& sampling = *request.mutable_sampling();
    sampling.set_max_tokens(traffic_.max_tokens);
    sampling.set_ignore_eos(traffic_.ignore_eos);
    sampling.set_temperature(traffic_.temperature);
    sampling.set_seed(traffic_.seed + index);
    return request;
  }

  services::EngineClient& engine_;
  const EngineTraffic traffic_;
  const uint32_t vocab_size_;
};

absl::StatusOr<engine::v1::GetModelInfoResponse> AskModelInfo(services::EngineClient& engine) {
  services::CallContext context;
  context.LimitTo(services::kUnaryDurationMax);
  absl::StatusOr<engine::v1::GetModelInfoResponse> info;
  absl::Notification answered;
  engine.GetModelInfo(context, [&](absl::StatusOr<engine::v1::GetModelInfoResponse> response) {
    info = std::move(response);
    answered.Notify();
  });
  answered.WaitForNotification();
  return info;
}

}  // namespace

absl::StatusOr<std::unique_ptr<TrafficTarget>> MakeEngineTarget(services::EngineClient& engine,
                                                                const EngineTraffic& traffic) {
  const absl::StatusOr<engine::v1::GetModelInfoResponse> info = AskModelInfo(engine);
  if (!info.ok()) return info.status();
  if (info->vocab_size() == 0) return absl::UnavailableError("the engine has no model yet");
  const uint64_t tokens = uint64_t{traffic.prompt_tokens} + traffic.max_tokens;
  if (tokens > info->context_tokens_max()) {
    return absl::InvalidArgumentError(
        absl::StrCat("prompt and answer are ", tokens, " tokens; the model's context holds ",
                     info->context_tokens_max(), "; lower --prompt-tokens or --max-tokens"));
  }
  return std::make_unique<EngineTarget>(engine, traffic, info->vocab_size());
}

}  // namespace tessera::cli
