#pragma once

#include <cstdint>
#include <string_view>

#include "headrace/ingest/detail/headers.hpp"

namespace headrace::ingest {

/// Senders to receive from: an address, and a port or any.
struct SenderFilter {
  std::uint32_t address[4] = {0, 0, 0, 0};  ///< As Flow::remote.
  std::uint32_t version = 4;                ///< 4 or 6.
  std::uint16_t port = 0;                   ///< 0: any.

  [[nodiscard]] bool matches(const Flow& flow) const noexcept;
};

/// Reads "10.0.0.1", "10.0.0.1:1000", "fd00::1" or "[fd00::1]:1000". Throws UsageError for anything else.
[[nodiscard]] SenderFilter parse_sender(std::string_view text);

}  // namespace headrace::ingest
