#include "wire/grpc/stream.hpp"

#include <algorithm>
#include <cstring>
#include <exception>
#include <utility>

#include "wire/asking.hpp"
#include "wire/grpc/infer_messages.hpp"
#include "wire/grpc/proto_writer.hpp"
#include "wire/infer_reply.hpp"
#include "wire/request_error.hpp"

namespace headrace::wire::grpc {

namespace {

constexpr std::size_t kExchangesMax = 64;    // most exchanges of a stream before its client must wait
constexpr std::size_t kHeaderOverhead = 32;  // per header, as RFC 9113 counts SETTINGS_MAX_HEADER_LIST_SIZE
constexpr std::string_view kType = "application/grpc";
constexpr const char* kNoMemory = "the server has no memory left for this reply; try again later";

// Numbers of fields of ModelStreamInferResponse, and of the id in its infer_response.
constexpr std::uint32_t kErrorMessage = 1;
constexpr std::uint32_t kInferResponse = 2;
constexpr std::uint32_t kResponseId = 3;

/// "application/grpc", "application/grpc+proto", "application/grpc;...".
bool is_grpc(std::string_view type) {
  return type.starts_with(kType) &&
         (type.size() == kType.size() || type[kType.size()] == '+' || type[kType.size()] == ';');
}

std::string error_response(std::string_view why, std::string_view id) {
  std::string infer_response;
  if (!id.empty()) put_bytes(infer_response, kResponseId, id);
  std::string message;
  put_bytes(message, kErrorMessage, why);
  put_bytes(message, kInferResponse, infer_response);
  return message;
}

}  // namespace

Stream::Stream(Front& front, StreamOwner& owner, Session& session, std::int32_t id)
    : front_(front),
      owner_(owner),
      session_(session),
      id_(id),
      memory_(front.memory),
      held_memory_(front.memory),
      reader_(front.shared.config.body_bytes_max, memory_, front.buffers),
      began_(front.now),
      moved_at_(began_) {}

Stream::~Stream() { abandon(); }

void Stream::abandon() noexcept {
  for (Exchange& exchange : exchanges_) {
    if (exchange.inference != nullptr) exchange.inference->owner = nullptr;
    exchange.inference.reset();
    if (exchange.call != nullptr) exchange.call->owner = nullptr;
    exchange.call.reset();
  }
  asking_ = 0;
}

void Stream::on_header(std::string_view name, std::string_view value) {
  if (method_ || ended()) return;  // a trailer
  head_bytes_ += name.size() + value.size() + kHeaderOverhead;
  if (head_bytes_ > front_.shared.config.head_bytes_max) return;
  if (name == ":method") {
    verb_ = value;
  } else if (name == ":path") {
    asked_ = find_method(value);
    if (!asked_) path_ = value;
  } else if (name == "content-type") {
    is_grpc_ = is_grpc(value);
  } else if (name == "authorization") {
    if (!authorization_) {
      authorization_ = value;
    } else {
      authorization_->clear();  // two headers count as an invalid one
    }
  } else if (name == "traceparent") {
    if (front_.shared.traces.enabled()) trace_ = sampled_parent(value);
  } else if (name == "grpc-encoding") {
    is_encoded_ = value != "identity";
  } else if (name == "grpc-timeout") {
    const std::optional<Duration> timeout = parse_timeout(value);
    bad_timeout_ = !timeout;
    if (timeout) deadline_ = *timeout > Time::max() - began_ ? Time::max() : began_ + *timeout;
  }
}

void Stream::on_head() {
  // Frees these strings with the head: HPACK can encode long ones in a byte, and a call may stay open.
  const std::string verb = std::exchange(verb_, {});
  const std::string path = std::exchange(path_, {});
  const std::optional<std::string> authorization = std::exchange(authorization_, {});
  if (verb != "POST" || !is_grpc_) {
    status_.emplace();
    count_reply(front_, Protocol::grpc, kBadRequest);
    return session_.refuse_http(id_, verb == "POST" ? "415" : "405");
  }
  if (head_bytes_ > front_.shared.config.head_bytes_max) {
    return end(kTooLarge, "the headers of the request are too long");
  }
  if (bad_timeout_) return end(kBadRequest, "the header grpc-timeout is not a valid timeout");
  if (is_encoded_) return end(kNotImplemented, "compressed messages are not supported");
  try {
    if (asked_ && is_health(*asked_)) {
      if (front_.credentials->tokens != nullptr) reader_.limit(0);  // the caller is not authenticated
    } else {
      front_.credentials->require_token(authorization);
    }
    if (!asked_) refuse_path(path);
    method_ = asked_;
  } catch (const RequestError& error) {
    end(error.status(), error.what());
  }
}

bool Stream::is_full() const noexcept { return exchanges_.size() >= kExchangesMax; }

void Stream::on_data(std::string_view bytes) {
  moved_at_ = front_.now;
  if (ended()) return session_.consume(id_, bytes.size());
  if (held_.empty()) {
    const std::size_t count = bytes.size();
    bytes = read(bytes);
    session_.consume(id_, count - bytes.size());
  }
  if (ended()) return;
  if (!held_memory_.resize(held_.size() + bytes.size())) return end(kUnavailable, kNoMemory);
  held_ += bytes;
  show_progress();
}

std::string_view Stream::read(std::string_view bytes) {
  try {
    while (!bytes.empty() && !ended() && !is_full()) {
      if (!reader_.began()) began_ = front_.now;
      bytes.remove_prefix(reader_.read(bytes));
      if (!reader_.done()) continue;
      if (!is_stream()) {
        if (!bytes.empty() && handled_ == 0) throw RequestError(kBadRequest, "this method takes only one message");
        return bytes;
      }
      handle(reader_.message());
      reader_.reset();
    }
  } catch (const RequestError& error) {
    end(error.status(), error.what());
  }
  return ended() ? std::string_view() : bytes;
}

void Stream::on_end() {
  half_closed_ = true;
  if (ended()) return;
  if (is_stream()) return end_if_complete();
  if (!reader_.done()) return end(kBadRequest, "the request ends in the middle of a message");
  handle(reader_.message());
  reader_.reset();
  if (!ended()) show_progress();
}

void Stream::handle(std::string_view message) {
  ++handled_;
  Exchange& exchange = exchanges_.emplace_back(front_.memory);
  try {
    begin(exchange, message);
  } catch (const RequestError& error) {
    count_unread(front_, Protocol::grpc, error.model(), error.status());
    if (!is_stream()) return end(error.status(), error.what());
    const std::string response = error_response(error.what(), id_of(message));
    reply(exchange, response.size(), [&](std::string& out) { out += response; });
    count_reply(front_, Protocol::grpc, error.status());
  }
}

void Stream::begin(Exchange& exchange, std::string_view message) {
  const Service service{.models = *front_.models,
                        .regions = front_.shared.regions,
                        .draining = front_.shared.draining.load(std::memory_order_relaxed),
                        .model_control = front_.shared.calls.enabled()};
  Outcome outcome = grpc::call(service, *method_, message, front_.inferences);
  if (outcome.call != nullptr) {
    outcome.call->owner = this;
    outcome.call->thread = front_.thread;
    front_.shared.calls.add(outcome.call);
    exchange.call = std::move(outcome.call);
    ++asking_;
    return;
  }
  if (outcome.inference == nullptr) {
    reply(exchange, outcome.message.size(), [&](std::string& out) { out += outcome.message; });
    return count_reply(front_, Protocol::grpc, kOk);
  }
  Inference& inference = *outcome.inference;
  inference.deadline = std::min(inference.deadline, deadline_);
  inference.owner = this;
  inference.client = &owner_;
  inference.protocol = Protocol::grpc;
  inference.arrived = began_;
  inference.trace = trace_;
  if (!ask(front_, outcome.inference)) return reply_inference(exchange, inference);
  exchange.inference = std::move(outcome.inference);
  ++asking_;
}

void Stream::finished(Inference& inference) {
  const auto exchange =
      std::ranges::find(exchanges_, &inference, [](const Exchange& one) { return one.inference.get(); });
  exchange->inference.reset();
  --asking_;
  try {
    try {
      reply_inference(*exchange, inference);
    } catch (const RequestError& error) {
      end(error.status(), error.what());
    }
    if (!std::exchange(attended_, true)) owner_.attend(*this);
  } catch (const std::exception&) {
    owner_.give_up();
  }
}

void Stream::call_ended(ModelCall& call) {
  const auto exchange = std::ranges::find(exchanges_, &call, [](const Exchange& one) { return one.call.get(); });
  const std::shared_ptr<ModelCall> kept = std::exchange(exchange->call, nullptr);
  --asking_;
  try {
    if (call.status == kOk) {
      reply(*exchange, 0, [](std::string& /*out*/) {});
      count_reply(front_, Protocol::grpc, kOk);
    } else {
      end(call.status, call.message);
    }
    if (!std::exchange(attended_, true)) owner_.attend(*this);
  } catch (const std::exception&) {
    owner_.give_up();
  }
}

void Stream::reply_inference(Exchange& exchange, const Inference& inference) {
  try {
    require_answers(inference);
    write_shared_outputs(inference);
    const InferResponse response(inference);
    std::string head;  // head of the ModelStreamInferResponse
    if (is_stream()) put_bytes_head(head, kInferResponse, response.bytes());
    reply(exchange, head.size() + response.bytes(), [&](std::string& out) {
      out += head;
      response.put(out);
    });
    count_reply(front_, Protocol::grpc, kOk);
    count(front_, inference, kOk);
  } catch (const RequestError& error) {
    count(front_, inference, error.status());
    if (!is_stream()) return end(error.status(), error.what());
    reply_error(exchange, inference, error.what());
    count_reply(front_, Protocol::grpc, error.status());
  }
}

void Stream::reply_error(Exchange& exchange, const Inference& inference, const std::string& why) {
  const std::string response = error_response(why, inference.id);
  reply(exchange, response.size(), [&](std::string& out) { out += response; });
}

template <class Write>
void Stream::reply(Exchange& exchange, std::size_t bytes, Write write) {
  if (!exchange.memory.resize(exchange.memory.bytes() + kPrefixBytes + bytes)) {
    throw RequestError(kUnavailable, kNoMemory);
  }
  exchange.reply.reserve(kPrefixBytes + bytes);
  exchange.reply = prefix_of(bytes);
  write(exchange.reply);
  exchange.is_done = true;
}

void Stream::advance() {
  attended_ = false;
  if (!held_.empty() && !ended() && !is_full()) {
    const std::string held = std::exchange(held_, {});
    const std::string_view left = read(held);
    if (!ended()) held_ = left;
    (void)held_memory_.resize(held_.size());
    session_.consume(id_, held.size() - held_.size());
  }
  show_progress();
}

void Stream::show_progress() {
  end_if_complete();
  if (replies_) return session_.resume(id_);
  if (exchanges_.empty() || !exchanges_.front().is_done) return;
  replies_ = true;
  session_.begin_reply(id_);
}

void Stream::end_if_complete() {
  if (ended() || !half_closed_) return;
  if (!is_stream()) {
    if (!exchanges_.empty() && exchanges_.front().is_done) status_.emplace();
    return;
  }
  if (reader_.began() || !held_.empty()) {
    if (held_.empty()) end(kBadRequest, "the request ends in the middle of a message");
    return;
  }
  if (!exchanges_.empty()) return;
  status_.emplace();
  if (replies_) {
    session_.resume(id_);
  } else {
    session_.refuse(id_, *status_);
  }
}

void Stream::end(int http_status, const std::string& message) {
  if (ended()) return;
  count_reply(front_, Protocol::grpc, http_status);
  status_ = CallStatus{.code = code_of(http_status), .message = message};
  abandon();
  // A reply that is partly sent must be completed. All others are dropped.
  while (exchanges_.size() > (reply_at_ > 0 ? 1 : 0)) exchanges_.pop_back();
  session_.consume(id_, held_.size());
  held_.clear();
  (void)held_memory_.resize(0);
  reader_.reset();
  if (replies_) {
    session_.resume(id_);
  } else {
    session_.refuse(id_, *status_);
  }
}

Chunk Stream::fill(std::span<char> frame) {
  Chunk chunk;
  while (chunk.bytes < frame.size() && !exchanges_.empty() && exchanges_.front().is_done) {
    const std::string& reply = exchanges_.front().reply;
    const std::size_t count = std::min(frame.size() - chunk.bytes, reply.size() - reply_at_);
    std::memcpy(frame.data() + chunk.bytes, reply.data() + reply_at_, count);
    chunk.bytes += count;
    reply_at_ += count;
    if (reply_at_ < reply.size()) break;
    exchanges_.erase(exchanges_.begin());
    reply_at_ = 0;
  }
  moved_at_ = front_.now;
  if (exchanges_.empty()) end_if_complete();
  if (!exchanges_.empty() || !ended()) {
    if (!held_.empty() && !is_full() && !std::exchange(attended_, true)) owner_.attend(*this);
    return chunk;
  }
  chunk.is_last = true;
  chunk.status = &*status_;
  return chunk;
}

void Stream::check_time(Time now) {
  const ServerConfig& config = front_.shared.config;
  if (ended() || asking_ > 0 || !exchanges_.empty()) {
    // Engines enforce the deadlines of their queries. A client that reads no replies would keep their memory.
    const bool loads = !ended() && asking_ > 0 && exchanges_.front().call != nullptr;
    if (loads && now >= deadline_) return end(kTimedOut, "the request's timeout passed, but the operation continues");
    if (asking_ == 0 && now - moved_at_ > config.idle_max) session_.reset(id_);
    return;
  }
  const bool comes = !is_stream() || reader_.began();
  if (now >= deadline_) {
    end(kTimedOut, "the request's timeout passed before it was answered");
  } else if (comes && now - began_ > config.request_max) {
    end(kRequestTimedOut, "the request did not arrive in time");
  } else if (!comes && front_.shared.draining.load(std::memory_order_relaxed)) {
    end(kUnavailable, "the server is about to stop");
  } else if (!comes && now - moved_at_ > config.idle_max) {
    end(kUnavailable, "the stream was idle for too long");
  }
}

}  // namespace headrace::wire::grpc
