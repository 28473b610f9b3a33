#pragma once

#include <cstdint>

namespace headrace::ingest {

/// The kernel's header before each packet (virtio 1.2, 5.1.6, in the machine's byte order). linux/virtio_net.h has a
/// member named `class`, so C++ cannot include it.
struct VirtioHeader {
  static constexpr std::uint8_t kChecksumPartial = 1;  ///< In `flags`: the checksum is not complete yet.
  static constexpr std::uint8_t kChecksumValid = 2;    ///< In `flags`: the checksum has been verified.
  static constexpr std::uint8_t kOne = 0;              ///< Value of `merged` for a packet that is not merged.

  std::uint8_t flags = 0;
  std::uint8_t merged = kOne;
  std::uint16_t header_bytes = 0;
  std::uint16_t segment_bytes = 0;
  std::uint16_t checksum_start = 0;
  std::uint16_t checksum_offset = 0;

  [[nodiscard]] std::uint16_t segments() const noexcept { return merged == kOne ? std::uint16_t{0} : segment_bytes; }
  /// A packet whose checksum is not complete has not left this machine, so it needs no check.
  [[nodiscard]] bool verified() const noexcept { return (flags & (kChecksumPartial | kChecksumValid)) != 0; }
};
static_assert(sizeof(VirtioHeader) == 10);

}  // namespace headrace::ingest
