#include "services/gateway/http_answer.h"

#include <boost/beast/http/status.hpp>

#include "absl/strings/str_cat.h"

namespace tessera::gateway {
namespace {

namespace http = boost::beast::http;

std::string HeadText(int status, std::string_view content_type, const HttpHeaders& headers,
                     bool keep_alive) {
  const auto reason = http::obsolete_reason(static_cast<http::status>(status));
  std::string head = absl::StrCat(
      "HTTP/1.1 ", status, " ",
      status == 499 ? "Client Closed Request" : std::string(reason.data(), reason.size()),
      "\r\nserver: tessera\r\ncontent-type: ", std::string(content_type), "\r\n");
  for (const auto& [name, value] : headers) absl::StrAppend(&head, name, ": ", value, "\r\n");
  if (!keep_alive) head += "connection: close\r\n";
  return head;
}

}  // namespace

std::string HttpText(const HttpResponse& response, bool keep_alive, bool with_body) {
  std::string text = HeadText(response.status, response.content_type, response.headers, keep_alive);
  absl::StrAppend(&text, "content-length: ", response.body.size(), "\r\n\r\n");
  if (with_body) text += response.body;
  return text;
}

void HttpAnswer::SetEvents(Events events) {
  std::function<void()> on_gone;
  {
    absl::MutexLock lock(&mutex_);
    if (gone_) {
      on_gone = std::move(events.on_gone);
    } else if (!taken_all_) {
      events_ = std::move(events);
    }
  }
  if (on_gone) on_gone();
}

void HttpAnswer::Respond(HttpResponse response) {
  {
    absl::MutexLock lock(&mutex_);
    if (gone_ || ended_ || streaming_) return;
    waiting_ = HttpText(response, keep_alive_, request_.method != "HEAD");
    ended_ = true;
  }
  CallWake();
}

void HttpAnswer::BeginStream(const HttpHeaders& headers) {
  absl::MutexLock lock(&mutex_);
  if (gone_ || ended_ || streaming_) return;
  streaming_ = true;
  // A client of HTTP/1.0 knows no chunks: its stream ends with the connection.
  if (!chunked_) keep_alive_ = false;
  waiting_ = HeadText(200, "text/event-stream; charset=utf-8", headers, keep_alive_);
  waiting_ += "cache-control: no-cache\r\nx-accel-buffering: no\r\n";
  waiting_ += chunked_ ? "transfer-encoding: chunked\r\n\r\n" : "\r\n";
}

bool HttpAnswer::Write(std::string_view text) {
  bool room = true;
  {
    absl::MutexLock lock(&mutex_);
    if (gone_ || ended_ || !streaming_ || text.empty()) return true;
    if (chunked_) {
      absl::StrAppend(&waiting_, absl::Hex(text.size()), "\r\n");
      waiting_ += text;
      waiting_ += "\r\n";
    } else {
      waiting_ += text;
    }
    if (waiting_.size() > high_) behind_ = true;
    room = !behind_;
    if (std::exchange(wake_posted_, true)) return room;
  }
  CallWake();
  return room;
}

void HttpAnswer::End() {
  {
    absl::MutexLock lock(&mutex_);
    if (gone_ || ended_ || !streaming_) return;
    if (chunked_) waiting_ += "0\r\n\r\n";
    ended_ = true;
    if (std::exchange(wake_posted_, true)) return;
  }
  CallWake();
}

bool HttpAnswer::Take(std::string& out) {
  absl::MutexLock lock(&mutex_);
  wake_posted_ = false;
  out.swap(waiting_);
  if (ended_) {
    taken_all_ = true;
  }
  return ended_;
}

void HttpAnswer::Written() {
  std::function<void()> on_writable;
  {
    absl::MutexLock lock(&mutex_);
    if (!behind_ || waiting_.size() > high_ / 4) return;
    behind_ = false;
    on_writable = events_.on_writable;
  }
  if (on_writable) on_writable();
}

void HttpAnswer::Close(bool gone) {
  Events events;
  Wake wake;
  {
    absl::MutexLock lock(&mutex_);
    gone_ = true;
    waiting_.clear();
    events = std::exchange(events_, {});
    wake = std::exchange(wake_, nullptr);
  }
  if (gone && events.on_gone) events.on_gone();
}

bool HttpAnswer::keep_alive() const {
  absl::MutexLock lock(&mutex_);
  return keep_alive_;
}

void HttpAnswer::CallWake() {
  Wake wake;
  {
    absl::MutexLock lock(&mutex_);
    wake = wake_;
  }
  if (wake) wake(shared_from_this());
}

}  // namespace tessera::gateway
