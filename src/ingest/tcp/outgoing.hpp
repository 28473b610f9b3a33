#pragma once

#include <cstddef>
#include <cstdint>

#include "headrace/ingest/detail/wire.hpp"

namespace headrace::ingest {

/// The send buffer of a connection: its bytes from the first one that the peer has not acknowledged.
struct TcpOutgoing {
  static constexpr std::uint32_t kBytesMax = 1024;

  std::uint16_t length = 0;    ///< Bytes in the buffer.
  std::uint16_t next = 0;      ///< The first byte to send next. The timer sets it back.
  std::byte bytes[kBytesMax];  ///< Only the first `length` are ever read.

  /// Adds bytes. False, without adding any, if they do not all fit.
  [[nodiscard]] HEADRACE_HD bool add(const std::byte* from, std::uint32_t count) {
    if (count > kBytesMax - length) return false;
    copy_octets(bytes + length, from, count);
    length = static_cast<std::uint16_t>(length + count);
    return true;
  }

  /// Drops the first `count` bytes, which were acknowledged.
  HEADRACE_HD void drop(std::uint32_t count) {
    copy_octets(bytes, bytes + count, length - count);
    length = static_cast<std::uint16_t>(length - count);
    next = static_cast<std::uint16_t>(next > count ? next - count : 0);
  }

  [[nodiscard]] HEADRACE_HD std::uint32_t waiting() const { return length - next; }
};

}  // namespace headrace::ingest
