#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace headrace::ingest {

/// How the bytes of parts get to where they belong.
enum class CopyWay : std::uint8_t {
  automatic,       ///< The fastest that the device has for the parts at hand.
  gather,          ///< Headrace's own: a warp takes a few parts, and deals 16-byte lines of their targets to its lanes.
  bulk,            ///< The bulk copy engine brings parts to shared memory several deep, warps shift and store them.
  block,           ///< One block a packet, a byte a thread at a time unless both sides are equally aligned.
  cub,             ///< cub::DeviceMemcpy::Batched.
  device_copy,     ///< cudaMemcpyAsync from device code, one a packet (Ito 2024).
  device_copy_2,   ///< cudaMemcpy2DAsync from device code, two packets a call where they are alike.
  device_copy_32,  ///< The same, 32 packets a call.
  host_copy,       ///< A copy a packet, given to the stream by the host.
  host_copy_2,     ///< A strided copy for two packets where they are alike.
  host_copy_32
};

/// Every way, in the order above.
[[nodiscard]] std::span<const CopyWay> all_copy_ways() noexcept;
[[nodiscard]] std::string_view to_string(CopyWay way) noexcept;
/// Throws UsageError that lists the ways.
[[nodiscard]] CopyWay parse_copy_way(std::string_view text);

/// Packets that one copy takes at most: 2 and 32 for the ways that merge.
[[nodiscard]] std::uint32_t merge_count(CopyWay way) noexcept;

}  // namespace headrace::ingest
