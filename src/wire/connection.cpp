#include "wire/connection.hpp"

#include <sys/epoll.h>

#include <chrono>
#include <utility>

namespace headrace::wire {

namespace {

constexpr std::size_t kKeptBytes = 64 << 10;  // largest buffer that an idle connection keeps
constexpr Duration kLinger = std::chrono::seconds(2);
constexpr std::string_view kWantsTls =
    "HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nContent-Length: 49\r\nConnection: close\r\n\r\n"
    "{\"error\":\"this port speaks TLS: ask by https://\"}";

}  // namespace

Connection::Connection(Front& front, Transport transport)
    : front_(front),
      transport_(std::move(transport)),
      state_(transport_.greets() ? State::greeting : State::open),
      moved_at_(SteadyClock::now()) {
  front_.loop.add(transport_.descriptor(), EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, *this);
}

void Connection::ready(std::uint32_t events) {
  front_.now = SteadyClock::now();
  if ((events & EPOLLERR) != 0) return close();
  if ((events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP)) != 0) readable_ = true;
  if ((events & (EPOLLRDHUP | EPOLLHUP)) != 0) ends_ = true;
  if ((events & EPOLLOUT) != 0 && std::exchange(room_reads_, false)) readable_ = true;
  guard([&] {
    if (state_ == State::greeting) return want_turn();  // it takes long: each turn runs only a few
    if ((events & EPOLLOUT) != 0 || transport_.tls() != nullptr) flush();
    take_in();
  });
}

void Connection::go_on() noexcept {
  queued_ = false;
  guard([&] {
    if (state_ == State::greeting) greet();
    if (state_ == State::open) resume();
    take_in();
  });
}

void Connection::want_turn() {
  if (!std::exchange(queued_, true)) front_.turns.push_back(this);
}

void Connection::greet() {
  switch (transport_.greet()) {
    case TlsStep::wants_bytes:
    case TlsStep::wants_room: return;
    case TlsStep::done: break;
    case TlsStep::ended:
    case TlsStep::failed: return refuse_greeting();
  }
  front_.replies.handshakes.add(1);
  state_ = State::open;
  readable_ = true;  // bytes after the handshake may have arrived with it
  note_move();
}

/// The client has been told the reason, and gets time to read it.
void Connection::refuse_greeting() {
  if (transport_.tls()->met_nobody()) return close();
  front_.replies.handshakes_failed.add(1);
  front_.shared.handshake_failure.store(transport_.tls()->why(), std::memory_order_relaxed);
  const bool is_http = transport_.tls()->met_plain_http();
  transport_.become_plain();
  note_move();
  if (is_http) put(kWantsTls);
  state_ = State::ending;
  if (is_http) return flush();
  end();
}

void Connection::take_in() {
  if (state_ == State::open && reads() && std::exchange(unread_, false)) {
    const std::string bytes = std::exchange(rest_, {});
    keep(read(bytes));
  }
  if (state_ == State::open && reads() && readable_ && !unread_) receive();
  if (state_ == State::lingering && readable_) linger();
  const bool may_read = state_ == State::open && reads() && (readable_ || unread_);
  if (may_read || (state_ == State::lingering && readable_)) want_turn();
}

void Connection::receive() {
  std::size_t count = 0;
  switch (transport_.receive(front_.buffer, count)) {
    case Transfer::some: break;
    case Transfer::wait_other: room_reads_ = true; [[fallthrough]];
    case Transfer::wait: readable_ = false; return;
    case Transfer::ended:
    case Transfer::failed: return close();
  }
  // A short read means that the socket is empty, and new bytes make an event. The client's end, though, has made its
  // event already.
  if (count < front_.buffer.size() && transport_.tls() == nullptr && !ends_) readable_ = false;
  const std::string_view bytes(front_.buffer.data(), count);
  if (rest_.empty()) return keep(read(bytes));
  std::string joined = std::exchange(rest_, {});
  joined += bytes;
  keep(read(joined));
}

void Connection::linger() {
  switch (transport_.discard(front_.buffer)) {
    case Transfer::some: return;
    case Transfer::wait:
    case Transfer::wait_other: readable_ = false; return;
    case Transfer::ended:
    case Transfer::failed: return close();
  }
}

void Connection::keep(std::string_view unread) {
  if (state_ != State::open) unread = {};
  rest_.assign(unread);
  unread_ = !rest_.empty() && state_ == State::open && (unread_ || !reads());
}

void Connection::flush() {
  if (state_ == State::ending && unwritten() == 0) return end();  // the end of the stream had to wait for room
  if (state_ == State::over || state_ == State::greeting || unwritten() == 0) return;
  while (unwritten() > 0) {
    std::size_t count = 0;
    switch (transport_.send(std::string_view(out_).substr(out_at_), count)) {
      case Transfer::some: break;
      case Transfer::wait:
      case Transfer::wait_other: return;
      case Transfer::ended:
      case Transfer::failed: return close();
    }
    out_at_ += count;
    if (state_ == State::open) {
      moved();
    } else {
      note_move();
    }
  }
  out_at_ = 0;
  out_.clear();
  if (out_.capacity() > kKeptBytes) out_.shrink_to_fit();
  if (state_ == State::ending) {
    end();
  } else {
    written();
  }
}

void Connection::end() noexcept {
  if (state_ == State::over || state_ == State::lingering) return;
  state_ = State::ending;
  if (unwritten() > 0 || transport_.finish() != Transfer::some) return;
  state_ = State::lingering;
}

void Connection::check(Time now) noexcept {
  switch (state_) {
    case State::greeting:
      if (now - moved_at_ > front_.shared.config.request_max) {
        front_.replies.handshakes_failed.add(1);
        front_.shared.handshake_failure.store("the handshake took too long", std::memory_order_relaxed);
        close();
      } else if (front_.shared.draining.load(std::memory_order_relaxed)) {
        close();
      }
      return;
    case State::open: return guard([&] { check_time(now); });
    case State::ending:
      if (now - moved_at_ > front_.shared.config.idle_max) close();
      return;
    case State::lingering:
      if (now - moved_at_ > kLinger) close();
      return;
    case State::over: return;
  }
}

void Connection::close() noexcept {
  if (state_ == State::over) return;
  state_ = State::over;
  ++front_.over;
  abandon();
  front_.loop.remove(transport_.descriptor());
  transport_.close();
}

std::optional<Time> Connection::silent_since() const noexcept {
  return state_ == State::over || kept_open_ || asks() ? std::nullopt : std::optional(moved_at_);
}

}  // namespace headrace::wire
