// The stream wrappers against each other, over a real connection. The health protocol serves as a
// carrier: a message's number travels in `status`, padding in an unknown field.

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/server_builder.h"
#include "gtest/gtest.h"
#include "services/common/stream/client_stream.h"
#include "services/common/stream/server_stream.h"
#include "services/common/stream/unary.h"

namespace tessera::services {
namespace {

using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;
using Writer = ServerStream<HealthCheckResponse>;

constexpr absl::Duration kPatience = absl::Seconds(20);

HealthCheckResponse Numbered(int number, size_t padding = 0) {
  HealthCheckResponse response;
  response.set_status(static_cast<HealthCheckResponse::ServingStatus>(number));
  if (padding > 0) {
    response.GetReflection()->MutableUnknownFields(&response)->AddLengthDelimited(
        99, std::string(padding, 'x'));
  }
  return response;
}

class Carrier final : public grpc::health::v1::Health::CallbackService {
 public:
  std::function<void(grpc::CallbackServerContext*, std::shared_ptr<Writer>)> on_watch;
  std::function<grpc::ServerUnaryReactor*(grpc::CallbackServerContext*, HealthCheckResponse*)>
      on_check;
  StreamLimits limits;
  Writer::Events events;

  grpc::ServerWriteReactor<HealthCheckResponse>* Watch(grpc::CallbackServerContext* context,
                                                       const HealthCheckRequest*) override {
    auto writer = Writer::Start(context, limits, events);
    on_watch(context, writer);
    return writer->reactor();
  }
  grpc::ServerUnaryReactor* Check(grpc::CallbackServerContext* context, const HealthCheckRequest*,
                                  HealthCheckResponse* response) override {
    return on_check(context, response);
  }
};

// What a client saw.
struct Seen {
  absl::Mutex mutex;
  std::vector<int> numbers ABSL_GUARDED_BY(mutex);
  std::atomic<bool> pause = false;
  std::atomic<int> done_count = 0;
  absl::Status status;
  absl::Notification done;

  size_t count() {
    absl::MutexLock lock(&mutex);
    return numbers.size();
  }
  bool AwaitCount(size_t at_least) {
    absl::MutexLock lock(&mutex);
    const auto reached = [&]()
                             ABSL_NO_THREAD_SAFETY_ANALYSIS { return numbers.size() >= at_least; };
    return mutex.AwaitWithTimeout(absl::Condition(&reached), kPatience);
  }
};

class StreamTest : public testing::Test {
 protected:
  void SetUp() override {
    int port = 0;
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(&carrier_);
    server_ = builder.BuildAndStart();
    // Without these two, gRPC lets megabytes be under way to a reader that does not read.
    grpc::ChannelArguments args;
    args.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
    args.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, 64 << 10);
    stub_ = grpc::health::v1::Health::NewStub(grpc::CreateCustomChannel(
        "127.0.0.1:" + std::to_string(port), grpc::InsecureChannelCredentials(), args));
    carrier_.events.on_done = [this](const StreamOutcome& outcome) {
      outcome_ = outcome;
      ++server_done_count_;
      server_done_.Notify();
    };
  }

  void TearDown() override {
    if (server_ != nullptr) server_->Shutdown(std::chrono::system_clock::now());
  }

  std::shared_ptr<ClientCall> Watch(Seen& seen, const CallContext& context = {}) {
    return ClientStream<HealthCheckRequest, HealthCheckResponse>::Start(
        context, {},
        {.on_message =
             [&seen](HealthCheckResponse& response) {
               absl::MutexLock lock(&seen.mutex);
               seen.numbers.push_back(response.status());
               return seen.pause ? Flow::kPause : Flow::kContinue;
             },
         .on_done =
             [&seen](const absl::Status& status) {
               seen.status = status;
               ++seen.done_count;
               seen.done.Notify();
             }},
        [this](auto* c, auto* q, auto* r) { stub_->async()->Watch(c, q, r); });
  }

  Carrier carrier_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<grpc::health::v1::Health::Stub> stub_;
  StreamOutcome outcome_;
  std::atomic<int> server_done_count_ = 0;
  absl::Notification server_done_;
};

TEST_F(StreamTest, EverythingPushedArrivesInOrderThenTheStatus) {
  std::thread producer;
  carrier_.on_watch = [&](auto*, std::shared_ptr<Writer> writer) {
    producer = std::thread([writer] {
      for (int i = 0; i < 500; ++i) {
        // A stream that is behind still takes what is pushed, up to its limit.
        EXPECT_NE(writer->Push(Numbered(i)), PushResult::kClosed);
      }
      writer->Finish(absl::OutOfRangeError("the end"));
      EXPECT_EQ(writer->Push(Numbered(7)), PushResult::kClosed);
      writer->Finish(absl::OkStatus());  // the first counts
    });
  };
  Seen seen;
  auto call = Watch(seen);
  ASSERT_TRUE(seen.done.WaitForNotificationWithTimeout(kPatience));
  producer.join();
  EXPECT_EQ(seen.status.code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(seen.status.message(), "the end");
  ASSERT_EQ(seen.count(), 500u);
  for (int i = 0; i < 500; ++i) EXPECT_EQ(seen.numbers[i], i);
  ASSERT_TRUE(server_done_.WaitForNotificationWithTimeout(kPatience));
  EXPECT_FALSE(outcome_.cancelled);
  EXPECT_FALSE(outcome_.reader_cut);
}

TEST_F(StreamTest, PushesOfSeveralThreadsAreNotLost) {
  std::vector<std::thread> producers;
  std::atomic<int> left = 4;
  carrier_.on_watch = [&](auto*, std::shared_ptr<Writer> writer) {
    for (int t = 0; t < 4; ++t) {
      producers.emplace_back([writer, t, &left] {
        for (int i = 0; i < 200; ++i) writer->Push(Numbered(t * 1000 + i));
        if (--left == 0) writer->Finish(absl::OkStatus());
      });
    }
  };
  Seen seen;
  auto call = Watch(seen);
  ASSERT_TRUE(seen.done.WaitForNotificationWithTimeout(kPatience));
  for (std::thread& producer : producers) producer.join();
  EXPECT_TRUE(seen.status.ok()) << seen.status;
  ASSERT_EQ(seen.count(), 800u);
  std::vector<int> next(4, 0);
  for (const int number : seen.numbers) EXPECT_EQ(number % 1000, next[number / 1000]++);
}

TEST_F(StreamTest, ASlowReaderStopsTheProducerAndLosesNothing) {
  // The producer obeys kBehind and goes on at on_writable: nothing may grow meanwhile.
  std::shared_ptr<Writer> writer;
  std::atomic<int> next = 0;
  std::atomic<int> pauses = 0;
  absl::Notification first_pause;
  std::atomic<size_t> queued_bytes_most = 0;
  constexpr int kCount = 3000;
  constexpr size_t kPadding = 1000;
  const auto produce = [&] {
    while (next < kCount) {
      const PushResult result = writer->Push(Numbered(next++, kPadding));
      queued_bytes_most = std::max<size_t>(queued_bytes_most, writer->queued_bytes());
      if (result == PushResult::kBehind) {
        if (pauses++ == 0) first_pause.Notify();
        return;
      }
    }
    writer->Finish(absl::OkStatus());
  };
  carrier_.events.on_writable = produce;
  carrier_.on_watch = [&](auto*, std::shared_ptr<Writer> started) {
    writer = started;
    produce();
  };
  Seen seen;
  seen.pause = true;
  auto call = Watch(seen);
  ASSERT_TRUE(first_pause.WaitForNotificationWithTimeout(kPatience));
  EXPECT_LE(seen.count(), 1u);
  // What the connection takes goes out; then all stands still.
  int sent_while_paused = -1;
  while (sent_while_paused != next) {
    sent_while_paused = next;
    absl::SleepFor(absl::Milliseconds(100));
  }
  EXPECT_LT(sent_while_paused, kCount);
  seen.pause = false;
  call->Resume();
  ASSERT_TRUE(seen.done.WaitForNotificationWithTimeout(kPatience));
  EXPECT_TRUE(seen.status.ok()) << seen.status;
  ASSERT_EQ(seen.count(), static_cast<size_t>(kCount));
  for (int i = 0; i < kCount; ++i) EXPECT_EQ(seen.numbers[i], i);
  EXPECT_LT(queued_bytes_most, carrier_.limits.bytes_high + 2 * kPadding);
}

TEST_F(StreamTest, AProducerThatCannotStopHasItsReaderCut) {
  carrier_.limits.messages_max = 64;
  absl::Notification cut;
  std::thread producer;
  carrier_.on_watch = [&](auto*, std::shared_ptr<Writer> writer) {
    producer = std::thread([&, writer] {
      while (writer->Push(Numbered(1, 1000)) != PushResult::kClosed) {
      }
      EXPECT_EQ(writer->queued_bytes(), 0u);  // what waited has been let go
      cut.Notify();
    });
  };
  Seen seen;
  seen.pause = true;
  auto call = Watch(seen);
  ASSERT_TRUE(cut.WaitForNotificationWithTimeout(kPatience));
  producer.join();
  seen.pause = false;
  call->Resume();
  ASSERT_TRUE(seen.done.WaitForNotificationWithTimeout(kPatience));
  EXPECT_EQ(seen.status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(ReasonOf(seen.status), "SLOW_READER");
  ASSERT_TRUE(server_done_.WaitForNotificationWithTimeout(kPatience));
  EXPECT_TRUE(outcome_.reader_cut);
}

TEST_F(StreamTest, AReaderThatStaysBehindIsCutAndThenReset) {
  carrier_.limits.behind_max = absl::Milliseconds(50);
  carrier_.limits.cut_grace = absl::Milliseconds(50);
  absl::Notification cancelled;
  carrier_.events.on_cancel = [&] { cancelled.Notify(); };
  carrier_.on_watch = [&](auto*, std::shared_ptr<Writer> writer) {
    while (writer->Push(Numbered(1, 16'000)) == PushResult::kOk) {
    }
  };
  Seen seen;
  seen.pause = true;
  auto call = Watch(seen);
  ASSERT_TRUE(cancelled.WaitForNotificationWithTimeout(kPatience));
  // The reader never comes back, and yet the call ends and frees what it holds.
  ASSERT_TRUE(server_done_.WaitForNotificationWithTimeout(kPatience));
  EXPECT_TRUE(outcome_.reader_cut);
  EXPECT_EQ(outcome_.status.code(), absl::StatusCode::kResourceExhausted);
  call->Cancel();
  ASSERT_TRUE(seen.done.WaitForNotificationWithTimeout(kPatience));
}

TEST_F(StreamTest, WaitingMessagesAreMerged) {
  carrier_.events.merge = [](HealthCheckResponse& last, HealthCheckResponse& next) {
    last.set_status(static_cast<HealthCheckResponse::ServingStatus>(last.status() + next.status()));
    return true;
  };
  carrier_.on_watch = [&](auto*, std::shared_ptr<Writer> writer) {
    // Before the handler returns nothing is written, so all but the first wait.
    for (int i = 0; i < 100; ++i) EXPECT_EQ(writer->Push(Numbered(1)), PushResult::kOk);
    writer->Finish(absl::OkStatus());
  };
  Seen seen;
  auto call = Watch(seen);
  ASSERT_TRUE(seen.done.WaitForNotificationWithTimeout(kPatience));
  EXPECT_EQ(seen.numbers, (std::vector<int>{1, 99}));
}

TEST_F(StreamTest, ACancelInAnyStateEndsBothSidesOnce) {
  enum Case { kBeforeAnything, kBetweenMessages, kWhilePaused, kWhileBehind, kFromTheEvent };
  for (const Case when :
       {kBeforeAnything, kBetweenMessages, kWhilePaused, kWhileBehind, kFromTheEvent}) {
    SCOPED_TRACE(when);
    absl::Notification cancelled;
    absl::Notification done;
    std::atomic<int> done_count = 0;
    carrier_.events.on_cancel = [&] { cancelled.Notify(); };
    carrier_.events.on_done = [&](const StreamOutcome& outcome) {
      EXPECT_TRUE(outcome.cancelled);
      ++done_count;
      done.Notify();
    };
    carrier_.on_watch = [&](auto*, std::shared_ptr<Writer> writer) {
      if (when == kBeforeAnything) return;
      writer->Push(Numbered(1));
      if (when == kWhileBehind) {
        while (writer->Push(Numbered(2, 1000)) == PushResult::kOk) {
        }
      }
    };
    Seen seen;
    seen.pause = when == kWhilePaused || when == kWhileBehind;
    std::shared_ptr<ClientCall> call;
    absl::Notification have_call;
    if (when == kFromTheEvent) {
      call = ClientStream<HealthCheckRequest, HealthCheckResponse>::Start(
          {}, {},
          {.on_message =
               [&](HealthCheckResponse&) {
                 have_call.WaitForNotification();
                 call->Cancel();
                 return Flow::kContinue;
               },
           .on_done =
               [&seen](const absl::Status& status) {
                 seen.status = status;
                 ++seen.done_count;
                 seen.done.Notify();
               }},
          [this](auto* c, auto* q, auto* r) { stub_->async()->Watch(c, q, r); });
      have_call.Notify();
    } else {
      call = Watch(seen);
      if (when == kBeforeAnything) {
        absl::SleepFor(absl::Milliseconds(20));
      } else {
        ASSERT_TRUE(seen.AwaitCount(1));
      }
      call->Cancel();
      call->Cancel();
      call->Resume();
    }
    ASSERT_TRUE(seen.done.WaitForNotificationWithTimeout(kPatience));
    EXPECT_EQ(seen.status.code(), absl::StatusCode::kCancelled);
    ASSERT_TRUE(cancelled.WaitForNotificationWithTimeout(kPatience));
    ASSERT_TRUE(done.WaitForNotificationWithTimeout(kPatience));
    absl::SleepFor(absl::Milliseconds(10));
    EXPECT_EQ(seen.done_count, 1);
    EXPECT_EQ(done_count, 1);
  }
}

TEST_F(StreamTest, AFinishThatRacesACancelIsCalledOnce) {
  std::atomic<int> started = 0;
  std::atomic<int> ended = 0;
  absl::Mutex mutex;
  std::vector<std::thread> producers;
  carrier_.events.on_done = [&](const StreamOutcome&) { ++ended; };
  carrier_.on_watch = [&](auto*, std::shared_ptr<Writer> writer) {
    ++started;
    absl::MutexLock lock(&mutex);
    producers.emplace_back([writer] {
      for (int i = 0; i < 20; ++i) writer->Push(Numbered(i));
      writer->Finish(absl::OkStatus());
    });
  };
  for (int round = 0; round < 50; ++round) {
    Seen seen;
    auto call = Watch(seen);
    if (round % 5 != 0) seen.AwaitCount(round % 20);
    call->Cancel();
    ASSERT_TRUE(seen.done.WaitForNotificationWithTimeout(kPatience));
    EXPECT_EQ(seen.done_count, 1);
  }
  // Returns when the last call is over.
  server_->Shutdown(std::chrono::system_clock::now() + absl::ToChronoSeconds(kPatience));
  server_ = nullptr;
  for (std::thread& producer : producers) producer.join();
  EXPECT_GT(started, 0);
  EXPECT_EQ(started, ended);
}

TEST_F(StreamTest, ADeadServerIsUnavailable) {
  carrier_.on_watch = [&](auto*, std::shared_ptr<Writer> writer) { writer->Push(Numbered(1)); };
  Seen seen;
  auto call = Watch(seen);
  ASSERT_TRUE(seen.AwaitCount(1));
  server_->Shutdown(std::chrono::system_clock::now());
  server_ = nullptr;
  ASSERT_TRUE(seen.done.WaitForNotificationWithTimeout(kPatience));
  EXPECT_EQ(seen.status.code(), absl::StatusCode::kUnavailable);
  // And the next call fails at once instead of waiting for it to come back.
  Seen again;
  const absl::Time begin = absl::Now();
  auto second = Watch(again);
  ASSERT_TRUE(again.done.WaitForNotificationWithTimeout(kPatience));
  EXPECT_EQ(again.status.code(), absl::StatusCode::kUnavailable);
  EXPECT_LT(absl::Now() - begin, absl::Seconds(5));
}

TEST_F(StreamTest, TheDeadlineEndsBothSides) {
  absl::Notification cancelled;
  carrier_.events.on_cancel = [&] { cancelled.Notify(); };
  carrier_.on_watch = [](auto*, std::shared_ptr<Writer>) {};
  CallContext context;
  context.LimitTo(absl::Milliseconds(100));
  Seen seen;
  auto call = Watch(seen, context);
  ASSERT_TRUE(seen.done.WaitForNotificationWithTimeout(kPatience));
  EXPECT_EQ(seen.status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_TRUE(cancelled.WaitForNotificationWithTimeout(kPatience));
  ASSERT_TRUE(server_done_.WaitForNotificationWithTimeout(kPatience));
  EXPECT_EQ(outcome_.status.code(), absl::StatusCode::kDeadlineExceeded);
}

TEST_F(StreamTest, ContextTravelsFromHopToHop) {
  RequestIds ids(1);
  CallContext got;
  carrier_.events.on_done = nullptr;  // there are two calls
  carrier_.on_watch = [&](grpc::CallbackServerContext* context, std::shared_ptr<Writer> writer) {
    got = ReadCallContext(*context, "from-the-request", ids);
    writer->Finish(absl::OkStatus());
  };
  CallContext sent;
  sent.request_id = "req-abc";
  sent.traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
  sent.authorization = "Bearer secret";
  sent.LimitTo(absl::Seconds(30));
  Seen seen;
  auto call = Watch(seen, sent);
  ASSERT_TRUE(seen.done.WaitForNotificationWithTimeout(kPatience));
  EXPECT_EQ(got.request_id, sent.request_id);
  EXPECT_EQ(got.traceparent, sent.traceparent);
  EXPECT_EQ(got.authorization, sent.authorization);
  EXPECT_GT(got.Remaining(), absl::Seconds(20));
  EXPECT_LE(got.Remaining(), absl::Seconds(31));  // the wire rounds up

  CallContext hostile;
  hostile.request_id = "two words";
  hostile.traceparent = "00-zz";
  Seen second;
  auto other = Watch(second, hostile);
  ASSERT_TRUE(second.done.WaitForNotificationWithTimeout(kPatience));
  EXPECT_EQ(got.request_id, "from-the-request");
  EXPECT_EQ(got.traceparent, "");
  EXPECT_LE(got.Remaining(), kCallDurationMax);
}

TEST_F(StreamTest, AUnaryCallIsAnsweredLaterFromAnotherThread) {
  std::thread worker;
  carrier_.on_check = [&](auto*, HealthCheckResponse* response) {
    auto reply = ServerReply::Start({});
    worker = std::thread([reply, response] {
      response->set_status(HealthCheckResponse::SERVING);
      reply->Finish(absl::OkStatus());
      reply->Finish(absl::InternalError("the first counts"));
    });
    return reply->reactor();
  };
  absl::Notification done;
  absl::StatusOr<HealthCheckResponse> answer;
  auto call = UnaryCall<HealthCheckRequest, HealthCheckResponse>::Start(
      {}, {},
      [&](absl::StatusOr<HealthCheckResponse> got) {
        answer = std::move(got);
        done.Notify();
      },
      [&](auto* c, auto* q, auto* a, auto f) { stub_->async()->Check(c, q, a, std::move(f)); });
  ASSERT_TRUE(done.WaitForNotificationWithTimeout(kPatience));
  worker.join();
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->status(), HealthCheckResponse::SERVING);
}

TEST_F(StreamTest, ACancelledUnaryCallTellsTheServer) {
  absl::Notification cancelled;
  absl::Notification over;
  std::shared_ptr<ServerReply> reply;
  absl::Notification started;
  carrier_.on_check = [&](auto*, HealthCheckResponse*) {
    reply = ServerReply::Start(
        {.on_cancel = [&] { cancelled.Notify(); }, .on_done = [&] { over.Notify(); }});
    started.Notify();
    return reply->reactor();
  };
  absl::Notification done;
  absl::Status status;
  auto call = UnaryCall<HealthCheckRequest, HealthCheckResponse>::Start(
      {}, {},
      [&](absl::StatusOr<HealthCheckResponse> got) {
        status = got.status();
        done.Notify();
      },
      [&](auto* c, auto* q, auto* a, auto f) { stub_->async()->Check(c, q, a, std::move(f)); });
  ASSERT_TRUE(started.WaitForNotificationWithTimeout(kPatience));
  call->Cancel();
  ASSERT_TRUE(done.WaitForNotificationWithTimeout(kPatience));
  EXPECT_EQ(status.code(), absl::StatusCode::kCancelled);
  ASSERT_TRUE(cancelled.WaitForNotificationWithTimeout(kPatience));
  reply->Finish(absl::CancelledError());
  ASSERT_TRUE(over.WaitForNotificationWithTimeout(kPatience));
}

}  // namespace
}  // namespace tessera::services
