#pragma once

#include <cstdint>

namespace headrace::ingest {

/// What the kernel says about a packet, before it (virtio 1.2, 5.1.6, as the machine orders bytes). linux/virtio_net.h
/// has a member named `class`, which C++ does not take.
struct VirtioHeader {
  static constexpr std::uint8_t kChecksumPartial = 1;  ///< In `flags`: the checksum is still to be made.
  static constexpr std::uint8_t kChecksumValid = 2;    ///< In `flags`: the checksum has been looked at.
  static constexpr std::uint8_t kOne = 0;              ///< `merged` of a packet that is not.

  std::uint8_t flags = 0;
  std::uint8_t merged = kOne;
  std::uint16_t header_bytes = 0;
  std::uint16_t segment_bytes = 0;
  std::uint16_t checksum_start = 0;
  std::uint16_t checksum_offset = 0;

  [[nodiscard]] std::uint16_t segments() const noexcept { return merged == kOne ? std::uint16_t{0} : segment_bytes; }
  /// A checksum that is still to be made is of bytes that have not left this machine.
  [[nodiscard]] bool verified() const noexcept { return (flags & (kChecksumPartial | kChecksumValid)) != 0; }
};
static_assert(sizeof(VirtioHeader) == 10);

}  // namespace headrace::ingest
