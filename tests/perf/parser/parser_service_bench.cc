// What the parser service adds to a token's way with many streams at once: from the tokenizer
// client's event to the parser client's event, both real gRPC's; the tokenizer is scripted.
//
//   parser_service_bench [STREAMS [TOKENS_PER_SECOND_AND_STREAM [SECONDS]]]
//
// Prints the latency of all tokens. One thread sends, evenly over time.
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "grpcpp/server_builder.h"
#include "services/clients/channel.h"
#include "services/clients/fake_tokenizer_client.h"
#include "services/clients/parser_client.h"
#include "services/parser/parser_service.h"

namespace tessera::parser {
namespace {

using Clock = std::chrono::steady_clock;
using TokenizerStream = services::FakeTokenizerClient::GenerateStream;

constexpr std::string_view kToken = "abcd";  // nothing in it is held back
constexpr absl::Duration kPatience = absl::Seconds(60);

struct Load {
  size_t streams = 1000;
  double rate = 10;  // tokens a second and stream
  double seconds = 5;
};

// One stream, from both ends.
struct Stream {
  std::shared_ptr<TokenizerStream> below;
  std::vector<Clock::time_point> sent;  // by token; written before the token is sent
  std::vector<double> seconds;          // by token
  bool ended = false;
};

struct Harness {
  absl::Mutex mutex;
  std::vector<Stream> streams ABSL_GUARDED_BY(mutex);
  size_t opened ABSL_GUARDED_BY(mutex) = 0;
  size_t ended ABSL_GUARDED_BY(mutex) = 0;
};

void Send(TokenizerStream& below, std::string_view text, bool end) {
  tokenizer::v1::GenerateResponse event;
  event.mutable_delta()->set_text(std::string(text));
  event.mutable_delta()->add_tokens()->set_text_bytes(static_cast<uint32_t>(text.size()));
  if (end) event.mutable_delta()->mutable_end()->set_reason(engine::v1::FINISH_REASON_STOP);
  below.Send(std::move(event));
}

// Opens the call below: answers `started` and keeps the stream. Its index is the request's seed.
void OnGenerate(Harness& harness, const tokenizer::v1::GenerateRequest& request,
                std::shared_ptr<TokenizerStream> below) {
  tokenizer::v1::GenerateResponse started;
  started.mutable_started()->set_request_id(request.request_id());
  below->Send(std::move(started));
  absl::MutexLock lock(&harness.mutex);
  harness.streams[request.sampling().seed()].below = std::move(below);
  ++harness.opened;
}

void OnMessage(Harness& harness, size_t index, const v1::ChatStreamResponse& event) {
  if (!event.has_delta()) return;
  const Clock::time_point now = Clock::now();
  const size_t tokens =
      (event.delta().reasoning().size() + event.delta().content().size()) / kToken.size();
  absl::MutexLock lock(&harness.mutex);
  Stream& stream = harness.streams[index];
  for (size_t i = 0; i < tokens; ++i) {
    const std::chrono::duration<double> took = now - stream.sent[stream.seconds.size()];
    stream.seconds.push_back(took.count());
  }
}

void OpenStreams(Harness& harness, services::ParserClient& client, size_t count,
                 std::vector<std::shared_ptr<services::ClientCall>>& calls) {
  for (size_t i = 0; i < count; ++i) {
    v1::ChatStreamRequest request;
    tokenizer::v1::Message& message = *request.mutable_options()->mutable_chat()->add_messages();
    message.set_role("user");
    message.set_text("Hi");
    request.mutable_options()->mutable_sampling()->set_seed(i);
    calls.push_back(client.ChatStream({}, std::move(request),
                                      {.on_message =
                                           [&harness, i](v1::ChatStreamResponse& event) {
                                             OnMessage(harness, i, event);
                                             return services::Flow::kContinue;
                                           },
                                       .on_done =
                                           [&harness](const absl::Status&) {
                                             absl::MutexLock lock(&harness.mutex);
                                             ++harness.ended;
                                           }}));
  }
}

// Sends to all streams in turn, each token at its own moment.
void SendTokens(Harness& harness, const Load& load) {
  const auto tokens = static_cast<size_t>(load.rate * load.seconds);
  const std::chrono::duration<double> gap(1.0 / (load.rate * static_cast<double>(load.streams)));
  const Clock::time_point begin = Clock::now();
  size_t sent = 0;
  for (size_t token = 0; token < tokens; ++token) {
    for (size_t i = 0; i < load.streams; ++i, ++sent) {
      std::this_thread::sleep_until(
          begin + std::chrono::duration_cast<Clock::duration>(gap * static_cast<double>(sent)));
      std::shared_ptr<TokenizerStream> below;
      {
        absl::MutexLock lock(&harness.mutex);
        below = harness.streams[i].below;
        harness.streams[i].sent.push_back(Clock::now());
      }
      Send(*below, kToken, /*end=*/false);
    }
  }
}

void EndStreams(Harness& harness, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    std::shared_ptr<TokenizerStream> below;
    {
      absl::MutexLock lock(&harness.mutex);
      below = harness.streams[i].below;
    }
    Send(*below, "", /*end=*/true);
    tokenizer::v1::GenerateResponse finished;
    finished.mutable_finished();
    below->Send(std::move(finished));
    below->Finish(absl::OkStatus());
  }
}

double CpuSeconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

int Report(Harness& harness, const Load& load, double cpu_seconds) {
  std::vector<double> all;
  absl::MutexLock lock(&harness.mutex);
  for (const Stream& stream : harness.streams) {
    all.insert(all.end(), stream.seconds.begin(), stream.seconds.end());
  }
  const auto expected = load.streams * static_cast<size_t>(load.rate * load.seconds);
  if (all.size() != expected || all.empty()) {
    std::fprintf(stderr, "%zu of %zu tokens came\n", all.size(), expected);
    return 1;
  }
  std::sort(all.begin(), all.end());
  const auto at = [&](double share) {
    return 1e3 * all[static_cast<size_t>(share * static_cast<double>(all.size() - 1))];
  };
  std::printf(
      "%zu streams, %.0f tokens/s each: %zu tokens; p50 %.3f ms, p99 %.3f ms, p99.9 %.3f "
      "ms, max %.3f ms; %.1f us of CPU a token over client, service and script\n",
      load.streams, load.rate, all.size(), at(0.5), at(0.99), at(0.999), at(1),
      1e6 * cpu_seconds / static_cast<double>(all.size()));
  return 0;
}

int Run(const Load& load) {
  Harness harness;
  {
    absl::MutexLock lock(&harness.mutex);
    harness.streams.resize(load.streams);
  }
  services::FakeTokenizerClient tokenizer;
  tokenizer.on_get_model_info = [] {
    tokenizer::v1::GetModelInfoResponse info;
    info.set_chat_template("<think></think> <tool_call> <function= ");
    info.set_default_chat_template_kwargs_json("{}");
    return info;
  };
  tokenizer.on_generate = [&](const auto&, const auto& request, auto stream) {
    OnGenerate(harness, request, std::move(stream));
  };
  const services::Logger log({.service = "parser", .sink = [](std::string_view) {}});
  services::RequestIds ids{1};
  prometheus::Registry registry;
  ParserMetrics metrics(registry);
  ParserService service(FormatFlags{}, tokenizer, log, ids, services::RealClock(), metrics,
                        [](bool) {});
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&service);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  const std::unique_ptr<services::ParserClient> client =
      services::MakeParserClient(*services::MakeChannel("127.0.0.1:" + std::to_string(port)));
  std::vector<std::shared_ptr<services::ClientCall>> calls;
  OpenStreams(harness, *client, load.streams, calls);
  {
    absl::MutexLock lock(&harness.mutex);
    const auto open = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(harness.mutex) {
      return harness.opened == load.streams;
    };
    if (!harness.mutex.AwaitWithTimeout(absl::Condition(&open), kPatience)) return 1;
  }
  const double cpu_before = CpuSeconds();
  SendTokens(harness, load);
  const double cpu_seconds = CpuSeconds() - cpu_before;
  EndStreams(harness, load.streams);
  {
    absl::MutexLock lock(&harness.mutex);
    const auto over = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(harness.mutex) {
      return harness.ended == load.streams;
    };
    if (!harness.mutex.AwaitWithTimeout(absl::Condition(&over), kPatience)) return 1;
  }
  server->Shutdown();
  return Report(harness, load, cpu_seconds);
}

}  // namespace
}  // namespace tessera::parser

int main(int argc, char** argv) {
  tessera::parser::Load load;
  if (argc > 1) load.streams = static_cast<size_t>(std::atol(argv[1]));
  if (argc > 2) load.rate = std::atof(argv[2]);
  if (argc > 3) load.seconds = std::atof(argv[3]);
  return tessera::parser::Run(load);
}
