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

/// The result of a transfer.
enum class Transfer : std::uint8_t {
  some,        ///< Transferred some or all bytes.
  wait,        ///< No bytes until the socket is readable or, for sending, writable.
  wait_other,  ///< The same with the other condition: TLS must write before it can receive, or read before it can send.
  ended,       ///< The other side sends no more.
  failed,
};

/// The socket of a connection, plain or with TLS, behind one interface. Used by one thread.
class Transport {
 public:
  /// @param socket  non-blocking
  explicit Transport(FileDescriptor socket) noexcept : socket_(std::move(socket)) {}
  Transport(FileDescriptor socket, std::unique_ptr<TlsSession> tls) noexcept
      : socket_(std::move(socket)), tls_(std::move(tls)), greets_(tls_ != nullptr) {}

  [[nodiscard]] int descriptor() const noexcept { return socket_.get(); }
  /// Whether a handshake must be done first.
  [[nodiscard]] bool greets() const noexcept { return greets_; }
  /// Continues the handshake.
  [[nodiscard]] TlsStep greet() noexcept;
  /// The TLS session; null for a plain connection.
  [[nodiscard]] const TlsSession* tls() const noexcept { return tls_.get(); }
  /// Continues without TLS after a failed handshake.
  void become_plain() noexcept;

  /// @param count  receives the number of bytes, if there are some
  [[nodiscard]] Transfer receive(std::span<char> into, std::size_t& count) noexcept;
  /// After `wait` or `wait_other`, `bytes` must start with the same bytes as before.
  [[nodiscard]] Transfer send(std::string_view bytes, std::size_t& count) noexcept;
  /// Tells the other side that this side sends no more. Call it again if it returns `wait` or `wait_other`.
  [[nodiscard]] Transfer finish() noexcept;
  /// Receives and discards bytes after finish().
  [[nodiscard]] Transfer discard(std::span<char> into) noexcept;
  /// Closes the socket, and tells the other side if that is possible without waiting.
  void close() noexcept;

 private:
  FileDescriptor socket_;
  std::unique_ptr<TlsSession> tls_;
  bool greets_ = false;
};

}  // namespace headrace::wire
