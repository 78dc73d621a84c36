#include "services/tokenizer/tokenizer_service.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "services/clients/channel.h"
#include "services/common/field_error.h"
#include "services/common/status_map.h"
#include "services/common/stream/server_stream.h"
#include "services/common/stream/unary.h"

namespace tessera::services {
namespace {

using tessera::tokenizer::AddedTokens;
using tessera::tokenizer::EncodeOptions;
using tessera::tokenizer::Tokenizer;
using tessera::tokenizer::TokenSpan;

absl::Status Loading() {
  return WithReason(absl::UnavailableError("the tokenizer is loading; try again"), "LOADING");
}

absl::StatusOr<AddedTokens> FromProto(tokenizer::v1::AddedTokens added_tokens) {
  switch (added_tokens) {
    case tokenizer::v1::ADDED_TOKENS_UNSPECIFIED:
    case tokenizer::v1::ADDED_TOKENS_PARSE:
      return AddedTokens::kParse;
    case tokenizer::v1::ADDED_TOKENS_SPECIAL_AS_TEXT:
      return AddedTokens::kSpecialAsText;
    case tokenizer::v1::ADDED_TOKENS_AS_TEXT:
      return AddedTokens::kAllAsText;
    default:
      return InvalidField("added_tokens", absl::StrCat("is ", static_cast<int>(added_tokens),
                                                       ", which this server does not know"));
  }
}

absl::Status TokenizeTexts(const Tokenizer& tokenizer,
                           const tokenizer::v1::TokenizeRequest& request,
                           tokenizer::v1::TokenizeResponse& response) {
  if (static_cast<size_t>(request.texts_size()) > kTokenizeTextsMax) {
    return InvalidField("texts", absl::StrCat("has ", request.texts_size(), " texts; the limit is ",
                                              kTokenizeTextsMax));
  }
  size_t bytes = 0;
  for (const std::string& text : request.texts()) bytes += text.size();
  if (bytes > kPromptBytesMax) {
    return InvalidField("texts", absl::StrCat("hold ", bytes, " bytes together; the limit is ",
                                              kPromptBytesMax, "; send fewer or shorter ones"));
  }
  const absl::StatusOr<AddedTokens> added_tokens = FromProto(request.added_tokens());
  if (!added_tokens.ok()) return added_tokens.status();
  const EncodeOptions options = {.add_special_tokens = request.add_special_tokens(),
                                 .added_tokens = *added_tokens};
  std::vector<uint32_t> ids;
  std::vector<TokenSpan> spans;
  for (int i = 0; i < request.texts_size(); ++i) {
    ids.clear();
    spans.clear();
    const absl::Status status = tokenizer.EncodeTo(request.texts(i), options, ids,
                                                   request.return_offsets() ? &spans : nullptr);
    if (!status.ok()) {
      return FieldError(status.code(), absl::StrCat("texts[", i, "]"),
                        {status.message().data(), status.message().size()});
    }
    tokenizer::v1::TokenizedText& result = *response.add_results();
    result.mutable_tokens()->mutable_ids()->Add(ids.begin(), ids.end());
    for (const TokenSpan& span : spans) {
      result.add_offsets(span.begin);
      result.add_offsets(span.end);
    }
  }
  return absl::OkStatus();
}

absl::Status DetokenizeSequences(const Tokenizer& tokenizer,
                                 const tokenizer::v1::DetokenizeRequest& request,
                                 tokenizer::v1::DetokenizeResponse& response) {
  if (static_cast<size_t>(request.sequences_size()) > kDetokenizeSequencesMax) {
    return InvalidField("sequences",
                        absl::StrCat("has ", request.sequences_size(), " lists; the limit is ",
                                     kDetokenizeSequencesMax));
  }
  size_t tokens = 0;
  for (const engine::v1::TokenIds& sequence : request.sequences()) tokens += sequence.ids_size();
  if (tokens > kDetokenizeTokensMax) {
    return InvalidField("sequences", absl::StrCat("hold ", tokens, " ids together; the limit is ",
                                                  kDetokenizeTokensMax));
  }
  for (const engine::v1::TokenIds& sequence : request.sequences()) {
    response.add_texts(
        tokenizer.Decode(absl::MakeConstSpan(sequence.ids().data(), sequence.ids_size()),
                         request.skip_special_tokens()));
  }
  return absl::OkStatus();
}

// The files of a model as a stream of pieces; reads on when the caller has taken the last one.
class FileSender final : public std::enable_shared_from_this<FileSender> {
 public:
  using Stream = ServerStream<tokenizer::v1::GetTokenizerResponse>;

  explicit FileSender(std::shared_ptr<const PromptBuilder> prompts)
      : prompts_(std::move(prompts)) {}

  grpc::ServerWriteReactor<tokenizer::v1::GetTokenizerResponse>* Start(
      grpc::CallbackServerContext* context, std::function<void(const StreamOutcome&)> on_done) {
    stream_ = Stream::Start(context, {},
                            {.on_writable = [self = shared_from_this()] { self->Send(); },
                             .on_done = std::move(on_done)});
    auto* const reactor = stream_->reactor();
    Send();
    return reactor;
  }

 private:
  void Send() {
    const std::vector<ModelFile>& files = prompts_->model().files;
    while (file_ < files.size()) {
      const ModelFile& file = files[file_];
      tokenizer::v1::GetTokenizerResponse piece;
      piece.set_name(file.name);
      if (offset_ == 0) piece.set_sha256(file.sha256);
      piece.set_content(file.content.substr(offset_, kFilePieceBytes));
      offset_ += kFilePieceBytes;
      if (offset_ >= file.content.size()) {
        offset_ = 0;
        ++file_;
      }
      // After kBehind another thread may be in here already.
      if (stream_->Push(std::move(piece)) != PushResult::kOk) return;
    }
    stream_->Finish(absl::OkStatus());
  }

  const std::shared_ptr<const PromptBuilder> prompts_;
  std::shared_ptr<Stream> stream_;
  size_t file_ = 0;
  size_t offset_ = 0;
};

}  // namespace

TokenizerService::TokenizerService(Parts parts)
    : parts_(std::move(parts)),
      metrics_(parts_.registry),
      pool_(parts_.pool_threads, kWorkTasksMax),
      watcher_(parts_.engine, [this](bool serving) {
        {
          absl::MutexLock lock(&mutex_);
          engine_serving_ = serving;
        }
        metrics_.engine_serving.Set(serving ? 1 : 0);
        parts_.log.Info(serving ? "the engine serves" : "the engine does not serve");
        TellServing();
      }) {}

TokenizerService::~TokenizerService() = default;

void TokenizerService::SetModel(std::shared_ptr<const TextModel> model, PromptOptions options) {
  {
    absl::MutexLock lock(&mutex_);
    prompts_ =
        std::make_shared<const PromptBuilder>(std::move(model), std::move(options), parts_.clock);
  }
  TellServing();
}

std::shared_ptr<const PromptBuilder> TokenizerService::prompts() const {
  absl::MutexLock lock(&mutex_);
  return prompts_;
}

void TokenizerService::TellServing() {
  // Under the lock, so that two changes cannot be told in the wrong order.
  absl::MutexLock lock(&mutex_);
  if (parts_.on_serving) parts_.on_serving(prompts_ != nullptr && engine_serving_);
}

void TokenizerService::Ended(const char* method, const CallContext& context,
                             const absl::Status& status, absl::Duration arrived) {
  const absl::Duration took = parts_.clock.Monotonic() - arrived;
  metrics_.Ended(method, status.code(), took);
  parts_.log.Debug("call ended", {{"request_id", context.request_id},
                                  {"method", method},
                                  {"code", CodeName(status.code())},
                                  {"field", FieldOf(status).value_or("")},
                                  {"seconds", absl::ToDoubleSeconds(took)}});
}

grpc::ServerUnaryReactor* TokenizerService::Answer(grpc::CallbackServerContext* context,
                                                   const char* method, size_t bytes, Work work) {
  const absl::Duration arrived = parts_.clock.Monotonic();
  CallContext call = ReadCallContext(*context, "", parts_.request_ids);
  std::shared_ptr<const PromptBuilder> prompts = this->prompts();
  if (prompts == nullptr) {
    Ended(method, call, Loading(), arrived);
    return Reply(context, Loading());
  }
  if (bytes <= kInlineBytesMax) {
    const absl::Status status = work(*prompts);
    Ended(method, call, status, arrived);
    return Reply(context, status);
  }
  // The request and the response live until Finish.
  std::shared_ptr<ServerReply> reply = ServerReply::Start({});
  const absl::Status posted =
      pool_.Post([this, method, arrived, reply, call, prompts, work = std::move(work)] {
        const absl::Status status = work(*prompts);
        Ended(method, call, status, arrived);
        reply->Finish(status);
      });
  if (!posted.ok()) {
    Ended(method, call, posted, arrived);
    reply->Finish(posted);
  }
  return reply->reactor();
}

grpc::ServerUnaryReactor* TokenizerService::Tokenize(grpc::CallbackServerContext* context,
                                                     const tokenizer::v1::TokenizeRequest* request,
                                                     tokenizer::v1::TokenizeResponse* response) {
  return Answer(context, "Tokenize", request->ByteSizeLong(),
                [request, response](const PromptBuilder& prompts) {
                  return TokenizeTexts(*prompts.model().tokenizer, *request, *response);
                });
}

grpc::ServerUnaryReactor* TokenizerService::Detokenize(
    grpc::CallbackServerContext* context, const tokenizer::v1::DetokenizeRequest* request,
    tokenizer::v1::DetokenizeResponse* response) {
  return Answer(context, "Detokenize", request->ByteSizeLong(),
                [request, response](const PromptBuilder& prompts) {
                  return DetokenizeSequences(*prompts.model().tokenizer, *request, *response);
                });
}

grpc::ServerUnaryReactor* TokenizerService::RenderChat(
    grpc::CallbackServerContext* context, const tokenizer::v1::RenderChatRequest* request,
    tokenizer::v1::RenderChatResponse* response) {
  return Answer(context, "RenderChat", request->ByteSizeLong(),
                [this, request, response](const PromptBuilder& prompts) -> absl::Status {
                  absl::StatusOr<Prompt> prompt =
                      prompts.FromChat(request->chat(), watcher_.context_tokens_max());
                  if (!prompt.ok()) return prompt.status();
                  response->set_text(std::move(prompt->text));
                  response->mutable_tokens()->mutable_ids()->Add(prompt->ids.begin(),
                                                                 prompt->ids.end());
                  return absl::OkStatus();
                });
}

grpc::ServerWriteReactor<tokenizer::v1::GenerateResponse>* TokenizerService::Generate(
    grpc::CallbackServerContext* context, const tokenizer::v1::GenerateRequest* request) {
  CallContext call = ReadCallContext(*context, request->request_id(), parts_.request_ids);
  std::shared_ptr<const PromptBuilder> prompts = this->prompts();
  if (prompts == nullptr) {
    metrics_.Ended("Generate", Loading().code(), absl::ZeroDuration());
    auto stream = ServerStream<tokenizer::v1::GenerateResponse>::Start(context, {}, {});
    stream->Finish(Loading());
    return stream->reactor();
  }
  return GenerateCall::Start(context, *request, std::move(call), std::move(prompts),
                             {parts_.engine, watcher_, pool_, metrics_, parts_.log, parts_.clock});
}

grpc::ServerWriteReactor<tokenizer::v1::GetTokenizerResponse>* TokenizerService::GetTokenizer(
    grpc::CallbackServerContext* context, const tokenizer::v1::GetTokenizerRequest*) {
  const absl::Duration arrived = parts_.clock.Monotonic();
  CallContext call = ReadCallContext(*context, "", parts_.request_ids);
  std::shared_ptr<const PromptBuilder> prompts = this->prompts();
  if (prompts == nullptr) {
    auto stream = ServerStream<tokenizer::v1::GetTokenizerResponse>::Start(context, {}, {});
    stream->Finish(Loading());
    return stream->reactor();
  }
  auto sender = std::make_shared<FileSender>(std::move(prompts));
  return sender->Start(context,
                       [this, call = std::move(call), arrived](const StreamOutcome& outcome) {
                         if (outcome.reader_cut) metrics_.slow_readers_cut.Increment();
                         Ended("GetTokenizer", call, outcome.status, arrived);
                       });
}

grpc::ServerUnaryReactor* TokenizerService::GetModelInfo(
    grpc::CallbackServerContext* context, const tokenizer::v1::GetModelInfoRequest*,
    tokenizer::v1::GetModelInfoResponse* response) {
  const absl::Duration arrived = parts_.clock.Monotonic();
  CallContext call = ReadCallContext(*context, "", parts_.request_ids);
  std::shared_ptr<const PromptBuilder> prompts = this->prompts();
  if (prompts == nullptr) {
    Ended("GetModelInfo", call, Loading(), arrived);
    return Reply(context, Loading());
  }
  const TextModel& model = prompts->model();
  response->set_has_chat_template(!model.default_template.empty());
  response->mutable_template_variables()->Add(model.template_variables.begin(),
                                              model.template_variables.end());
  response->set_chat_template(model.default_template);
  response->set_default_chat_template_kwargs_json(
      prompts->options().default_chat_template_kwargs.dump());

  auto below = std::make_shared<PendingCall>();
  std::shared_ptr<ServerReply> reply =
      ServerReply::Start({.on_cancel = [below] { below->Cancel(); }});
  below->Set(parts_.engine.GetModelInfo(
      call, [this, call, arrived, reply,
             response](absl::StatusOr<engine::v1::GetModelInfoResponse> info) {
        absl::Status status = PeerStatus(info.status(), "engine", /*sent_any=*/false);
        if (info.ok()) {
          *response->mutable_engine() = *std::move(info);
        } else {
          metrics_.EngineFailed(status.code());
        }
        Ended("GetModelInfo", call, status, arrived);
        reply->Finish(status);
      }));
  return reply->reactor();
}

}  // namespace tessera::services
