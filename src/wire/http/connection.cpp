#include "wire/http/connection.hpp"

#include <utility>

#include "wire/asking.hpp"
#include "wire/request_error.hpp"

namespace headrace::wire::http {

namespace {

Limits limits_of(const ServerConfig& config) { return {config.head_bytes_max, config.body_bytes_max}; }

}  // namespace

Connection::Connection(Front& front, Transport transport)
    : wire::Connection(front, std::move(transport)),
      memory_(front.memory),
      reader_(limits_of(front.shared.config), memory_, this) {}

Connection::~Connection() { abandon(); }

void Connection::abandon() noexcept {
  if (inference_ != nullptr) inference_->owner = nullptr;
  inference_.reset();
  if (call_ != nullptr) call_->owner = nullptr;
  call_.reset();
}

std::string_view Connection::read(std::string_view bytes) {
  const auto reading = [this] { return is_open() && reads(); };
  const Time until = front().now + kTurn;
  try {
    while (!bytes.empty() && reading()) {
      if (!std::exchange(began_, true)) note_move();
      const std::size_t used = reader_.read(bytes);
      bytes.remove_prefix(used);
      if (reader_.done()) {
        handle();
        if (!bytes.empty() && SteadyClock::now() >= until) {
          read_again();
          return bytes;
        }
      } else if (used == 0) {
        break;
      }
    }
    if (reading() && reader_.head_done() && reader_.message().expects_continue && !std::exchange(continued_, true)) {
      put("HTTP/1.1 100 Continue\r\n\r\n");
      flush();
    }
    if (reading() && bytes.size() > front().shared.config.head_bytes_max + front().buffer.size()) {
      throw RequestError(431, "a line of the request is too long");
    }
  } catch (const RequestError& error) {
    keep_alive_ = false;
    reply(error_reply(error.status(), error.what()));
  }
  return bytes;
}

bool Connection::admit(const Message& message) {
  const Credentials& credentials = *front().credentials;
  if (credentials.tokens == nullptr) return true;
  if (needs_no_token(message, front().shared.config.page)) return false;
  credentials.require_token(message.authorization);
  return true;
}

void Connection::handle() {
  Message& message = reader_.message();
  keep_alive_ = message.keep_alive && !front().shared.draining.load(std::memory_order_relaxed);
  head_only_ = message.method == "HEAD";
  Shared& shared = front().shared;
  const Service service{.models = *front().models,
                        .regions = shared.regions,
                        .draining = shared.draining,
                        .model_control = shared.calls.enabled(),
                        .page = shared.config.page ? &shared : nullptr};
  Outcome outcome = route(service, message, front().inferences);
  if (outcome.call != nullptr) return wait_for(std::move(outcome.call));
  if (outcome.inference == nullptr) {
    count_unread(front(), Protocol::http, outcome.model, outcome.reply.status);
    return reply(std::move(outcome.reply));
  }
  ask(std::move(outcome.inference));
}

void Connection::ask(std::shared_ptr<Inference> inference) {
  inference->owner = this;
  inference->client = this;
  if (front().shared.traces.enabled()) inference->trace = sampled_parent(reader_.message().traceparent);
  inference->arrived = moved_at();  // when its first byte arrived
  if (!wire::ask(front(), inference)) return reply(reply_of(*inference), inference.get());
  inference_ = std::move(inference);
  state_ = State::asking;
}

void Connection::wait_for(std::shared_ptr<ModelCall> call) {
  call->owner = this;
  call->thread = front().thread;
  try {
    front().shared.calls.add(call);
  } catch (const RequestError& error) {
    return reply(error_reply(error.status(), error.what()));
  }
  call_ = std::move(call);
  state_ = State::asking;
}

void Connection::call_ended(ModelCall& call) {
  guard([&] {
    const std::shared_ptr<ModelCall> kept = std::exchange(call_, nullptr);
    reply(call.status == kOk ? Reply{} : error_reply(call.status, call.message));
    take_in();
  });
}

void Connection::finished(Inference& inference) {
  guard([&] {
    Reply answer = reply_of(inference);
    inference_.reset();
    reply(std::move(answer), &inference);
    take_in();
  });
}

void Connection::reply(Reply reply, const Inference* inference) {
  if (!memory_.resize(memory_.bytes() + reply.body.size())) {
    reply = error_reply(kUnavailable, "the server has no memory left for this reply; try again later");
  }
  put(head_of(reply, keep_alive_));
  if (!head_only_) put(reply.body);
  count_reply(front(), Protocol::http, reply.status);
  if (inference != nullptr) count(front(), *inference, reply.status);
  state_ = State::writing;
  note_move();
  flush();
}

void Connection::moved() noexcept {
  if (state_ == State::writing) note_move();
}

void Connection::written() {
  if (state_ != State::writing) return;  // 100 Continue
  (void)memory_.resize(0);
  if (!keep_alive_) return end();
  reader_ = Reader(limits_of(front().shared.config), memory_, this);
  began_ = continued_ = head_only_ = false;
  state_ = State::reading;
  read_again();
}

void Connection::check_time(Time now) {
  const ServerConfig& config = front().shared.config;
  const Duration still = now - moved_at();
  if (state_ == State::reading && !began_) {
    const bool is_idle = still > config.idle_max && !is_kept_open();
    if (front().shared.draining.load(std::memory_order_relaxed) || is_idle) close();
  } else if (state_ == State::reading && still > config.request_max) {
    keep_alive_ = false;
    reply(error_reply(kRequestTimedOut, "the request did not arrive in time"));
    take_in();
  } else if (state_ == State::writing && still > config.idle_max) {
    close();
  }
}

}  // namespace headrace::wire::http
