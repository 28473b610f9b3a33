#pragma once

#include <cstddef>
#include <cstdint>

#include "headrace/ingest/detail/wire.hpp"

namespace headrace::ingest {

/// What a connection has to say: bytes from the first that the peer has not acknowledged on.
struct TcpOutgoing {
  static constexpr std::uint32_t kBytesMax = 1024;

  std::uint16_t length = 0;    ///< Bytes that are kept.
  std::uint16_t next = 0;      ///< The first of them to be sent next. The timer sets it back.
  std::byte bytes[kBytesMax];  ///< Only the first `length` are ever read.

  /// False, and nothing kept, where they do not all fit.
  [[nodiscard]] HEADRACE_HD bool add(const std::byte* from, std::uint32_t count) {
    if (count > kBytesMax - length) return false;
    copy_octets(bytes + length, from, count);
    length = static_cast<std::uint16_t>(length + count);
    return true;
  }

  /// The first `count` were acknowledged.
  HEADRACE_HD void drop(std::uint32_t count) {
    copy_octets(bytes, bytes + count, length - count);
    length = static_cast<std::uint16_t>(length - count);
    next = static_cast<std::uint16_t>(next > count ? next - count : 0);
  }

  [[nodiscard]] HEADRACE_HD std::uint32_t waiting() const { return length - next; }
};

}  // namespace headrace::ingest
