#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace headrace::ingest {

/// An IPv4 or IPv6 address.
struct IpAddress {
  std::array<std::uint8_t, 16> bytes{};  ///< In network order; IPv4 uses the first 4, and the rest are 0.
  int version = 4;                       ///< 4 or 6.

  /// @param address  in the machine's byte order: 0x0A000001 is 10.0.0.1.
  [[nodiscard]] static constexpr IpAddress v4(std::uint32_t address) noexcept {
    IpAddress made;
    for (std::size_t i = 0; i < 4; ++i) made.bytes[i] = static_cast<std::uint8_t>(address >> (24 - 8 * i));
    return made;
  }
  [[nodiscard]] int bits() const noexcept { return version == 4 ? 32 : 128; }
  [[nodiscard]] bool operator==(const IpAddress&) const = default;
};

/// "10.0.0.1", "fd00::1" (RFC 5952).
[[nodiscard]] std::string to_string(const IpAddress& address);
/// "10.0.0.1:9000", "[fd00::1]:9000".
[[nodiscard]] std::string to_string(const IpAddress& address, std::uint16_t port);

}  // namespace headrace::ingest
