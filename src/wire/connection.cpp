#include "wire/connection.hpp"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <utility>

namespace headrace::wire {

namespace {

constexpr std::size_t kKeptBytes = 64 << 10;  // a buffer that an idle connection keeps
constexpr Duration kLinger = std::chrono::seconds(2);

}  // namespace

Connection::Connection(Front& front, FileDescriptor socket)
    : front_(front), socket_(std::move(socket)), moved_at_(SteadyClock::now()) {
  front_.loop.add(socket_.get(), EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, *this);
}

void Connection::ready(std::uint32_t events) {
  if ((events & EPOLLERR) != 0) return close();
  if ((events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP)) != 0) readable_ = true;
  guard([&] {
    if ((events & EPOLLOUT) != 0 && unwritten() > 0) flush();
    take_in();
  });
}

void Connection::go_on() noexcept {
  queued_ = false;
  guard([&] {
    if (state_ == State::open) resume();
    take_in();
  });
}

void Connection::want_turn() {
  if (!std::exchange(queued_, true)) front_.turns.push_back(this);
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
  const std::string_view bytes(front_.buffer.data(), static_cast<std::size_t>(count));
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

void Connection::keep(std::string_view unread) {
  if (state_ != State::open) unread = {};
  rest_.assign(unread);
  unread_ = !rest_.empty() && state_ == State::open && (unread_ || !reads());
}

void Connection::flush() {
  if (state_ == State::over || unwritten() == 0) return;
  while (unwritten() > 0) {
    const ssize_t count = ::send(socket_.get(), out_.data() + out_at_, unwritten(), MSG_NOSIGNAL);
    if (count < 0) {
      if (errno == EINTR) continue;
      if (errno != EAGAIN && errno != EWOULDBLOCK) close();
      return;
    }
    out_at_ += static_cast<std::size_t>(count);
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
  if (unwritten() > 0) return;
  ::shutdown(socket_.get(), SHUT_WR);
  state_ = State::lingering;
}

void Connection::check(Time now) noexcept {
  switch (state_) {
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
  front_.loop.remove(socket_.get());
  socket_ = FileDescriptor();
}

std::optional<Time> Connection::silent_since() const noexcept {
  return state_ == State::over || asks() ? std::nullopt : std::optional(moved_at_);
}

}  // namespace headrace::wire
