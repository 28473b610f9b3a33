#include "wire/client/channel.hpp"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <system_error>
#include <utility>

#include "headrace/base/error.hpp"

namespace headrace::wire::client {

namespace {

constexpr std::size_t kReceiveBytes = 256 << 10;
constexpr Duration kConnectEvery = std::chrono::milliseconds(100);
constexpr std::size_t kSaidMost = 512;  // bytes kept of the server's text about a failure

std::string text_of_errno(int number) { return std::generic_category().message(number); }

}  // namespace

Shared::Shared(const Endpoint& to, const Requests& asked, std::uint32_t streams_max)
    : endpoint(to), requests(asked), streams(streams_max), buffer(kReceiveBytes) {
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(to.address.c_str(), std::to_string(to.port).c_str(), &hints, &found) != 0) {
    throw UsageError(fmt::format("'{}' is not an IPv4 or IPv6 address", to.address));
  }
  std::memcpy(&address, found->ai_addr, found->ai_addrlen);
  address_bytes = found->ai_addrlen;
  ::freeaddrinfo(found);
}

void Shared::note(const Asked& asked, measure::Outcome outcome) {
  back.push_back({asked.scheduled, outcome});
  if (priorities) priorities->note(asked.is_high, asked.scheduled, outcome);
}

void Shared::end(const Asked& asked, measure::Outcome outcome, std::string_view said) {
  note(asked, outcome);
  --in_flight;
  if (outcome == measure::Outcome::failed && failure.empty()) failure = said.substr(0, kSaidMost);
  if (outcome == measure::Outcome::refused && refusal.empty()) refusal = said.substr(0, kSaidMost);
}

void Channel::ask(const Asked& asked, const std::string& content) {
  if (shared_.in_flight++ == 0) shared_.heard_at = SteadyClock::now();
  begin(asked, content);
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
  if (!socket.valid()) throw_errno("creating a socket");
  const int done = ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&shared_.address), shared_.address_bytes);
  if (done != 0 && errno != EINPROGRESS) {
    shared_.why_down = text_of_errno(errno);
    return;
  }
  std::unique_ptr<TlsSession> tls;
  if (const Endpoint& to = shared_.endpoint; to.tls != nullptr) {
    tls = std::make_unique<TlsSession>(to.tls, TlsRole::client, socket.get(), to.server_name);
  }
  transport_.emplace(std::move(socket), std::move(tls));
  state_ = State::connecting;
  watches_room_ = true;
  shared_.loop.add(transport_->descriptor(), EPOLLIN | EPOLLOUT, *this);
}

void Channel::ready(std::uint32_t events) {
  if (state_ == State::connecting) {
    int failure = 0;
    socklen_t size = sizeof(failure);
    ::getsockopt(transport_->descriptor(), SOL_SOCKET, SO_ERROR, &failure, &size);
    if (failure != 0) return lose(text_of_errno(failure));
    if ((events & EPOLLOUT) == 0) return;
    const int on = 1;
    ::setsockopt(transport_->descriptor(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    state_ = State::greeting;
  }
  if (state_ == State::greeting) return greet();
  if (state_ == State::open && (events & EPOLLOUT) != 0) flush();
  if (state_ == State::open && (events & ~static_cast<std::uint32_t>(EPOLLOUT)) != 0) receive();
}

void Channel::greet() {
  if (transport_->greets()) {
    switch (transport_->greet()) {
      case TlsStep::wants_bytes: return watch_room(false);
      case TlsStep::wants_room: return watch_room(true);
      case TlsStep::done: break;
      case TlsStep::ended:
      case TlsStep::failed: return lose(why_failed());
    }
  }
  state_ = State::open;
  opened();
  want_flush();
  receive();  // TLS may hold bytes that came with the end of the handshake
}

std::string Channel::why_failed() const {
  const TlsSession* const tls = transport_->tls();
  if (tls == nullptr) return text_of_errno(errno);
  if (tls->distrusts()) {
    return fmt::format("the server's certificate is not accepted for {}: {}", shared_.endpoint.server_name, tls->why());
  }
  return fmt::format("{} (TLS)", tls->why());
}

void Channel::receive() {
  // Bytes that TLS has already read make no event on the socket, so reads until there are none.
  const bool is_plain = transport_->tls() == nullptr;
  while (receive_some() && !is_plain) continue;
  if (state_ == State::open && out_at_ < out_.size()) want_flush();  // TLS may have waited for these bytes
}

bool Channel::receive_some() {
  std::size_t count = 0;
  switch (transport_->receive(shared_.buffer, count)) {
    case Transfer::some: break;
    case Transfer::wait_other: watch_room(true); return false;
    case Transfer::wait: return false;
    case Transfer::ended: lose("the server closed the connection"); return false;
    case Transfer::failed: lose(why_failed()); return false;
  }
  shared_.heard_at = SteadyClock::now();
  std::string why;
  if (!read({shared_.buffer.data(), count}, why)) lose(why);
  return state_ == State::open;
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
    std::size_t count = 0;
    switch (transport_->send(std::string_view(out_).substr(out_at_), count)) {
      case Transfer::some: out_at_ += count; break;
      case Transfer::wait: return watch_room(true);
      case Transfer::wait_other: return watch_room(false);
      case Transfer::ended:
      case Transfer::failed: return lose(why_failed());
    }
  }
}

void Channel::watch_room(bool on) {
  if (std::exchange(watches_room_, on) == on) return;
  shared_.loop.change(transport_->descriptor(), on ? EPOLLIN | EPOLLOUT : EPOLLIN, *this);
}

void Channel::lose(std::string_view why) {
  if (state_ == State::down) return;
  shared_.why_down = why;
  if (state_ == State::open) ++shared_.connections_lost;
  shared_.loop.remove(transport_->descriptor());
  transport_->close();
  transport_.reset();
  state_ = State::down;
  connect_at_ = SteadyClock::now() + kConnectEvery;
  out_.clear();
  out_at_ = 0;
  closed();
}

}  // namespace headrace::wire::client
