#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "base/file_descriptor.hpp"
#include "wire/tls.hpp"

namespace headrace::wire {

/// How a transfer went.
enum class Transfer : std::uint8_t {
  some,        ///< Some bytes, or all.
  wait,        ///< None before the socket has bytes, or room.
  wait_other,  ///< The same, but the socket needs room to receive, or bytes to send.
  ended,       ///< The other side sends no more.
  failed,
};

/// The socket of a connection, plain or with TLS: what is above sees no difference. Used by one thread.
class Transport {
 public:
  /// @param socket  does not block
  explicit Transport(FileDescriptor socket) noexcept : socket_(std::move(socket)) {}
  Transport(FileDescriptor socket, std::unique_ptr<TlsSession> tls) noexcept
      : socket_(std::move(socket)), tls_(std::move(tls)), greets_(tls_ != nullptr) {}

  [[nodiscard]] int descriptor() const noexcept { return socket_.get(); }
  /// Whether a handshake comes before all else.
  [[nodiscard]] bool greets() const noexcept { return greets_; }
  /// Goes on with the handshake.
  [[nodiscard]] TlsStep greet() noexcept;
  /// The TLS of the connection; null where it is plain.
  [[nodiscard]] const TlsSession* tls() const noexcept { return tls_.get(); }
  /// Goes on without TLS, after a handshake that failed.
  void become_plain() noexcept;

  /// @param count  gets the bytes that have come, where there are some
  [[nodiscard]] Transfer receive(std::span<char> into, std::size_t& count) noexcept;
  /// After `wait` or `wait_other`, `bytes` begin with the same as before.
  [[nodiscard]] Transfer send(std::string_view bytes, std::size_t& count) noexcept;
  /// Tells the other side that no more is sent. Where that has to `wait`, it is called again.
  [[nodiscard]] Transfer finish() noexcept;
  /// Receives and forgets what still comes after finish().
  [[nodiscard]] Transfer discard(std::span<char> into) noexcept;
  /// Closes the socket, and tells the other side where that needs no wait.
  void close() noexcept;

 private:
  FileDescriptor socket_;
  std::unique_ptr<TlsSession> tls_;
  bool greets_ = false;
};

}  // namespace headrace::wire
