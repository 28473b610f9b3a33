#include "wire/transport.hpp"

#include <sys/socket.h>

#include <cerrno>

namespace headrace::wire {

namespace {

Transfer transfer_of_errno() { return errno == EAGAIN || errno == EWOULDBLOCK ? Transfer::wait : Transfer::failed; }

/// @param usual  the usual condition that a transfer in this direction waits for
Transfer transfer_of(TlsStep step, TlsStep usual) {
  switch (step) {
    case TlsStep::done: return Transfer::some;
    case TlsStep::wants_bytes:
    case TlsStep::wants_room: return step == usual ? Transfer::wait : Transfer::wait_other;
    case TlsStep::ended: return Transfer::ended;
    case TlsStep::failed: return Transfer::failed;
  }
  return Transfer::failed;
}

Transfer receive_plain(int socket, std::span<char> into, std::size_t& count) {
  while (true) {
    const ssize_t received = ::recv(socket, into.data(), into.size(), 0);
    if (received < 0 && errno == EINTR) continue;
    if (received < 0) return transfer_of_errno();
    count = static_cast<std::size_t>(received);
    return count == 0 ? Transfer::ended : Transfer::some;
  }
}

}  // namespace

TlsStep Transport::greet() noexcept {
  const TlsStep step = tls_->greet();
  if (step == TlsStep::done) greets_ = false;
  return step;
}

void Transport::become_plain() noexcept {
  tls_.reset();
  greets_ = false;
}

Transfer Transport::receive(std::span<char> into, std::size_t& count) noexcept {
  if (tls_ != nullptr) return transfer_of(tls_->read(into, count), TlsStep::wants_bytes);
  return receive_plain(socket_.get(), into, count);
}

Transfer Transport::send(std::string_view bytes, std::size_t& count) noexcept {
  if (tls_ != nullptr) return transfer_of(tls_->write(bytes, count), TlsStep::wants_room);
  while (true) {
    const ssize_t sent = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return transfer_of_errno();
    count = static_cast<std::size_t>(sent);
    return Transfer::some;
  }
}

Transfer Transport::finish() noexcept {
  if (tls_ != nullptr) {
    const Transfer told = transfer_of(tls_->finish(), TlsStep::wants_room);
    if (told == Transfer::wait || told == Transfer::wait_other) return told;
  }
  ::shutdown(socket_.get(), SHUT_WR);
  return Transfer::some;
}

Transfer Transport::discard(std::span<char> into) noexcept {
  std::size_t count = 0;
  return receive_plain(socket_.get(), into, count);
}

void Transport::close() noexcept {
  if (tls_ != nullptr && !greets_) (void)tls_->finish();
  tls_.reset();
  socket_ = FileDescriptor();
}

}  // namespace headrace::wire
