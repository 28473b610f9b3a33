#include "wire/client/channel.hpp"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>

#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "headrace/base/error.hpp"

namespace headrace::wire::client {

namespace {

constexpr std::size_t kReceiveBytes = 256 << 10;
constexpr Duration kConnectEvery = std::chrono::milliseconds(100);
constexpr std::size_t kSaidMost = 512;  // bytes of what the server says of a failure

std::string text_of_errno(int number) { return std::generic_category().message(number); }

}  // namespace

Shared::Shared(const Endpoint& to, const Requests& asked, std::uint32_t streams_max)
    : endpoint(to), requests(asked), streams(streams_max), buffer(kReceiveBytes) {
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(to.address.c_str(), std::to_string(to.port).c_str(), &hints, &found) != 0) {
    throw UsageError(fmt::format("'{}' is no address of IPv4 or IPv6", to.address));
  }
  std::memcpy(&address, found->ai_addr, found->ai_addrlen);
  address_bytes = found->ai_addrlen;
  ::freeaddrinfo(found);
}

void Shared::end(Time scheduled, measure::Outcome outcome, std::string_view said) {
  back.push_back({scheduled, outcome});
  --in_flight;
  if (outcome == measure::Outcome::failed && failure.empty()) failure = said.substr(0, kSaidMost);
  if (outcome == measure::Outcome::refused && refusal.empty()) refusal = said.substr(0, kSaidMost);
}

void Channel::ask(Time scheduled, const std::string& content) {
  if (shared_.in_flight++ == 0) shared_.heard_at = SteadyClock::now();
  begin(scheduled, content);
  want_flush();
}

void Channel::want_flush() {
  if (!std::exchange(unflushed_, true)) shared_.unflushed.push_back(this);
}

void Channel::check(Time now) {
  if (state_ == State::open && spent()) {
    lose("the server ended the connection");
    connect_at_ = now;
  }
  if (state_ == State::down && now >= connect_at_) connect();
}

void Channel::connect() {
  connect_at_ = SteadyClock::now() + kConnectEvery;
  FileDescriptor socket(::socket(shared_.address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket.valid()) throw_errno("making a socket");
  const int done = ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&shared_.address), shared_.address_bytes);
  if (done != 0 && errno != EINPROGRESS) {
    shared_.why_down = text_of_errno(errno);
    return;
  }
  socket_ = std::move(socket);
  state_ = State::connecting;
  watches_room_ = true;
  shared_.loop.add(socket_.get(), EPOLLIN | EPOLLOUT, *this);
}

void Channel::ready(std::uint32_t events) {
  if (state_ == State::connecting) {
    int failure = 0;
    socklen_t size = sizeof(failure);
    ::getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &failure, &size);
    if (failure != 0) return lose(text_of_errno(failure));
    if ((events & EPOLLOUT) == 0) return;
    const int on = 1;
    ::setsockopt(socket_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    state_ = State::open;
    opened();
    want_flush();
  }
  if (state_ == State::open && (events & EPOLLOUT) != 0) flush();
  if (state_ == State::open && (events & ~static_cast<std::uint32_t>(EPOLLOUT)) != 0) receive();
}

void Channel::receive() {
  const ssize_t count = ::recv(socket_.get(), shared_.buffer.data(), shared_.buffer.size(), 0);
  if (count < 0) {
    if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) lose(text_of_errno(errno));
    return;
  }
  if (count == 0) return lose("the server closed the connection");
  shared_.heard_at = SteadyClock::now();
  std::string why;
  if (!read({shared_.buffer.data(), static_cast<std::size_t>(count)}, why)) lose(why);
}

void Channel::flush() {
  unflushed_ = false;
  if (state_ != State::open) return;
  while (true) {
    if (out_at_ == out_.size()) {
      out_.clear();
      out_at_ = 0;
      refill();
      if (out_.empty()) return watch_room(false);
    }
    const ssize_t count = ::send(socket_.get(), out_.data() + out_at_, out_.size() - out_at_, MSG_NOSIGNAL);
    if (count >= 0) {
      out_at_ += static_cast<std::size_t>(count);
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      return watch_room(true);
    } else if (errno != EINTR) {
      return lose(text_of_errno(errno));
    }
  }
}

void Channel::watch_room(bool on) {
  if (std::exchange(watches_room_, on) == on) return;
  shared_.loop.change(socket_.get(), on ? EPOLLIN | EPOLLOUT : EPOLLIN, *this);
}

void Channel::lose(std::string_view why) {
  if (state_ == State::down) return;
  shared_.why_down = why;
  if (state_ == State::open) ++shared_.connections_lost;
  shared_.loop.remove(socket_.get());
  socket_ = FileDescriptor();
  state_ = State::down;
  connect_at_ = SteadyClock::now() + kConnectEvery;
  out_.clear();
  out_at_ = 0;
  closed();
}

}  // namespace headrace::wire::client
