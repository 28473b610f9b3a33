#include "wire/http/connection.hpp"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <utility>

#include "wire/infer_reply.hpp"
#include "wire/request_error.hpp"

namespace headrace::wire::http {

namespace {

constexpr std::size_t kKeptBytes = 64 << 10;  // a buffer that an idle connection keeps
constexpr Duration kLinger = std::chrono::seconds(2);

Limits limits_of(const ServerConfig& config) { return {config.head_bytes_max, config.body_bytes_max}; }

std::int64_t wall_milliseconds() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
}

}  // namespace

Connection::Connection(Front& front, FileDescriptor socket)
    : front_(front),
      socket_(std::move(socket)),
      memory_(front.shared.memory),
      reader_(limits_of(front.shared.config), memory_),
      moved_at_(SteadyClock::now()) {
  front_.loop.add(socket_.get(), EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, *this);
}

Connection::~Connection() {
  if (inference_ != nullptr) inference_->owner = nullptr;
}

template <class Act>
void Connection::guard(Act act) noexcept {
  try {
    act();
  } catch (const std::exception&) {  // no memory: this connection ends, and no other
    close();
  }
}

void Connection::ready(std::uint32_t events) {
  if ((events & EPOLLERR) != 0) return close();
  if ((events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP)) != 0) readable_ = true;
  guard([&] {
    if ((events & EPOLLOUT) != 0 && out_at_ < out_.size()) write();
    take_in();
  });
}

void Connection::go_on() noexcept {
  queued_ = false;
  guard([&] { take_in(); });
}

void Connection::take_in() {
  if (state_ == State::reading && std::exchange(unread_, false)) {
    const std::string bytes = std::exchange(rest_, {});
    keep(read(bytes));
  }
  if (state_ == State::reading && readable_) receive();
  if (state_ == State::lingering && readable_) linger();
  const bool more = (state_ == State::reading && (readable_ || unread_)) || (state_ == State::lingering && readable_);
  if (more && !std::exchange(queued_, true)) front_.turns.push_back(this);
}

void Connection::receive() {
  const ssize_t count = ::recv(socket_.get(), front_.buffer.data(), front_.buffer.size(), 0);
  if (count == 0) return close();
  if (count < 0) {
    if (errno == EAGAIN || errno == EWOULDBLOCK) {
      readable_ = false;
    } else if (errno != EINTR) {
      close();
    }
    return;
  }
  std::string_view bytes(front_.buffer.data(), static_cast<std::size_t>(count));
  if (rest_.empty()) return keep(read(bytes));
  std::string joined = std::exchange(rest_, {});
  joined += bytes;
  keep(read(joined));
}

void Connection::linger() {
  const ssize_t count = ::recv(socket_.get(), front_.buffer.data(), front_.buffer.size(), 0);
  if (count > 0 || (count < 0 && errno == EINTR)) return;
  if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
    readable_ = false;
  } else {
    close();
  }
}

std::string_view Connection::read(std::string_view bytes) {
  try {
    while (!bytes.empty() && state_ == State::reading) {
      if (!std::exchange(began_, true)) moved_at_ = SteadyClock::now();
      const std::size_t used = reader_.read(bytes);
      bytes.remove_prefix(used);
      if (reader_.done()) {
        handle();
      } else if (used == 0) {
        break;
      }
    }
    if (state_ == State::reading && reader_.head_done() && reader_.message().expects_continue &&
        !std::exchange(continued_, true)) {
      out_ += "HTTP/1.1 100 Continue\r\n\r\n";
      write();
    }
    if (state_ == State::reading && bytes.size() > front_.shared.config.head_bytes_max + front_.buffer.size()) {
      throw RequestError(431, "a line of the request is too long");
    }
  } catch (const RequestError& error) {
    keep_alive_ = false;
    reply(error_reply(error.status(), error.what()));
  }
  return bytes;
}

void Connection::keep(std::string_view unread) {
  if (state_ == State::over || state_ == State::lingering || (state_ != State::reading && !keep_alive_)) return;
  rest_.assign(unread);
  if (state_ != State::reading) unread_ = !rest_.empty();
}

void Connection::handle() {
  Message& message = reader_.message();
  keep_alive_ = message.keep_alive && !front_.shared.draining.load(std::memory_order_relaxed);
  head_only_ = message.method == "HEAD";
  Outcome outcome = route({.models = front_.shared.models, .draining = front_.shared.draining}, message, memory_);
  if (outcome.inference == nullptr) return reply(std::move(outcome.reply));
  ask(std::move(outcome.inference));
}

void Connection::ask(std::shared_ptr<Inference> inference) {
  ServedModel& served = *inference->served;
  inference->owner = this;
  const Status taken = front_.askers[served.index].ask(inference);
  if (!taken.ok()) {
    inference->owner = nullptr;
    inference->fail(taken.error());
    served.failed.add(SteadyClock::now() - inference->began);
    return reply(reply_of(*inference));
  }
  inference_ = std::move(inference);
  state_ = State::asking;
}

void Connection::finished(Inference& inference) {
  ServedModel& served = *inference.served;
  (inference.status.ok() ? served.succeeded : served.failed).add(SteadyClock::now() - inference.began);
  if (inference.status.ok()) served.last_inference.store(wall_milliseconds(), std::memory_order_relaxed);
  guard([&] {
    Reply answer = reply_of(inference);
    inference_.reset();
    reply(std::move(answer));
    take_in();
  });
}

void Connection::reply(Reply reply) {
  if (!memory_.resize(memory_.bytes() + reply.body.size())) {
    reply = error_reply(kUnavailable, "the server has no memory left for this reply; try again later");
  }
  Shared& shared = front_.shared;
  shared.requests.fetch_add(1, std::memory_order_relaxed);
  if (reply.status >= kBadRequest) shared.failed.fetch_add(1, std::memory_order_relaxed);
  if (reply.status == kTooManyRequests || reply.status == kUnavailable) {
    shared.refused.fetch_add(1, std::memory_order_relaxed);
  }
  out_ += head_of(reply, keep_alive_);
  if (!head_only_) out_ += reply.body;
  state_ = State::writing;
  moved_at_ = SteadyClock::now();
  write();
}

void Connection::write() {
  while (out_at_ < out_.size()) {
    const ssize_t count = ::send(socket_.get(), out_.data() + out_at_, out_.size() - out_at_, MSG_NOSIGNAL);
    if (count < 0) {
      if (errno == EINTR) continue;
      if (errno != EAGAIN && errno != EWOULDBLOCK) close();
      return;
    }
    out_at_ += static_cast<std::size_t>(count);
    if (state_ == State::writing) moved_at_ = SteadyClock::now();
  }
  out_at_ = 0;
  out_.clear();
  if (state_ == State::writing) written();
}

void Connection::written() {
  if (out_.capacity() > kKeptBytes) out_.shrink_to_fit();
  (void)memory_.resize(0);
  if (!keep_alive_) {
    ::shutdown(socket_.get(), SHUT_WR);
    state_ = State::lingering;
    return;
  }
  reader_ = Reader(limits_of(front_.shared.config), memory_);
  began_ = continued_ = head_only_ = false;
  state_ = State::reading;
  unread_ = !rest_.empty();
}

void Connection::check(Time now) noexcept {
  const ServerConfig& config = front_.shared.config;
  const bool idle = state_ == State::reading && !began_;
  if (idle && (front_.shared.draining.load(std::memory_order_relaxed) || now - moved_at_ > config.idle_max)) {
    return close();
  }
  if (state_ == State::reading && began_ && now - moved_at_ > config.request_max) {
    return guard([&] {
      keep_alive_ = false;
      reply(error_reply(408, "the request did not come to its end in time"));
      take_in();
    });
  }
  if (state_ == State::writing && now - moved_at_ > config.idle_max) close();
  if (state_ == State::lingering && now - moved_at_ > kLinger) close();
}

void Connection::close() noexcept {
  if (state_ == State::over) return;
  state_ = State::over;
  ++front_.over;
  if (inference_ != nullptr) inference_->owner = nullptr;
  inference_.reset();
  front_.loop.remove(socket_.get());
  socket_ = FileDescriptor();
}

}  // namespace headrace::wire::http
