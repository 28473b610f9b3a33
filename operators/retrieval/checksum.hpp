#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace headrace::operators {

/// XXH64 with seed 0 (Collet, xxHash specification 0.1.1): a checksum that detects accidents, not forgery.
[[nodiscard]] std::uint64_t checksum(std::span<const std::byte> bytes) noexcept;

}  // namespace headrace::operators
