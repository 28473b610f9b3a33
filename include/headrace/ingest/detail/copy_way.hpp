#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace headrace::ingest {

/// How the bytes of parts are copied to their targets.
enum class CopyWay : std::uint8_t {
  automatic,      ///< Becomes `gather`.
  gather,         ///< Headrace's own kernel: a warp takes a few parts and deals out the 16-byte lines of their targets.
  bulk,           ///< The bulk copy engine prefetches parts into shared memory; warps shift and store them.
  block,          ///< One block per packet; a thread copies single bytes unless both sides are equally aligned.
  cub,            ///< cub::DeviceMemcpy::Batched.
  device_copy,    ///< cudaMemcpyAsync from device code, one call per packet (Ito 2024).
  device_copy_2,  ///< cudaMemcpy2DAsync from device code, one call per two packets if they are alike.
  device_copy_32,  ///< The same, one call per 32 packets.
  host_copy,       ///< The host enqueues one copy per packet.
  host_copy_2,     ///< The host enqueues one strided copy per two packets if they are alike.
  host_copy_32
};

/// Every way, in the order above.
[[nodiscard]] std::span<const CopyWay> all_copy_ways() noexcept;
[[nodiscard]] std::string_view to_string(CopyWay way) noexcept;
/// The way of that name. Throws UsageError that lists the ways if there is none.
[[nodiscard]] CopyWay parse_copy_way(std::string_view text);

/// Most packets that one copy takes: 2 or 32 for the ways that merge, otherwise 1.
[[nodiscard]] std::uint32_t merge_count(CopyWay way) noexcept;

}  // namespace headrace::ingest
