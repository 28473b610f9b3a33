#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "wire/memory_share.hpp"
#include "wire/spare_buffers.hpp"

namespace headrace::wire::grpc {

/// Bytes before each message: whether it is compressed, and its length.
inline constexpr std::size_t kPrefixBytes = 5;

/// Reads length-prefixed messages from the bytes of a call, one after the other.
/// Source: grpc/grpc, doc/PROTOCOL-HTTP2.md.
class MessageReader {
 public:
  /// @param memory  grows with the received bytes of a message, not by its announced length; outlives the reader
  /// @param spare   buffers that readers pass on to later readers; outlives the reader
  MessageReader(std::size_t bytes_max, MemoryShare& memory, SpareBuffers& spare)
      : bytes_max_(bytes_max), memory_(memory), spare_(spare) {}
  MessageReader(const MessageReader&) = delete;
  MessageReader& operator=(const MessageReader&) = delete;
  ~MessageReader() { spare_.give(std::move(message_)); }

  /// Continues reading the present message. Returns the number of bytes used, which may be fewer than all if the
  /// message is complete. Throws RequestError for a message that is compressed, too large, or larger than the memory
  /// left.
  [[nodiscard]] std::size_t read(std::string_view bytes);
  [[nodiscard]] bool done() const noexcept { return prefix_used_ == kPrefixBytes && message_.size() == length_; }
  /// Whether bytes of a message have been received.
  [[nodiscard]] bool began() const noexcept { return prefix_used_ > 0; }
  [[nodiscard]] std::string_view message() const noexcept { return message_; }
  /// Refuses messages of more than `bytes_max` bytes from now on.
  void limit(std::size_t bytes_max) noexcept { bytes_max_ = bytes_max; }
  /// Discards the present message and prepares for the next one.
  void reset() noexcept;

 private:
  void read_prefix();

  std::size_t bytes_max_;
  MemoryShare& memory_;
  SpareBuffers& spare_;
  std::array<unsigned char, kPrefixBytes> prefix_{};
  std::size_t prefix_used_ = 0;
  std::size_t length_ = 0;
  std::string message_;
};

/// The prefix of a message of `bytes` bytes.
[[nodiscard]] std::string prefix_of(std::size_t bytes);

}  // namespace headrace::wire::grpc
