#pragma once

#include <cstdint>

#include "headrace/device/kernel.hpp"
#include "headrace/ingest/detail/conversion.hpp"
#include "ingest/builder/even_run.hpp"
#include "ingest/builder/say_done.hpp"

/// The kernels that copy lists of parts. Each takes (const Part* parts, uint32_t count, uint32_t per_team,
/// DoneArgument done): `parts` is memory that the kernel can read; none of them is empty.
namespace headrace::ingest {

using PartsKernel = TypedKernel<const Part*, std::uint32_t, std::uint32_t, DoneArgument>;

/// The longest list that one launch takes.
inline constexpr std::uint32_t kPartsMax = 1U << 30;

/// Bytes that a team loads in one round. A burst of at most kShortBytes does not fill a device if teams take several
/// rounds, each of which takes a round trip to the ring: its parts are at most kRoundBytes long.
inline constexpr std::uint32_t kRoundBytes = 2048;
inline constexpr std::uint64_t kShortBytes = std::uint64_t{1} << 20;

/// How many parts, of average length, a team should take: one round of loads of a short burst, and several rounds of
/// others, so that reading the list costs little in comparison.
[[nodiscard]] std::uint32_t parts_per_team(std::uint64_t bytes, std::uint32_t count) noexcept;

[[nodiscard]] PartsKernel gather_kernel();
/// On a CPU device, several items share the parts.
[[nodiscard]] LaunchShape gather_shape(Device device, std::uint32_t count, std::uint32_t per_team);

/// (EvenRuns runs, uint32_t per_team, DoneArgument done): the same for runs of payloads, in the shape for their parts.
[[nodiscard]] TypedKernel<EvenRuns, std::uint32_t, DoneArgument> even_kernel();

/// (DoneArgument done): reports that all earlier work is done, for copies that cannot report it themselves. One block.
[[nodiscard]] TypedKernel<DoneArgument> say_kernel();

[[nodiscard]] PartsKernel block_kernel();
[[nodiscard]] LaunchShape block_shape(Device device, std::uint32_t count);

/// For CUDA devices of compute capability 9.0 or later only. Ignores `per_team`.
[[nodiscard]] PartsKernel bulk_kernel();
[[nodiscard]] LaunchShape bulk_shape(Device device, std::uint32_t count);

/// Converts while copying. A part is whole items, or one byte of an item that begins or ends in another part, which is
/// copied unconverted (see for_each_converted_part()).
[[nodiscard]] PartsKernel convert_kernel(Conversion conversion);
/// (byte* items, const uint32_t* which, uint32_t count): converts in place the items whose two bytes came in different
/// parts. Only for conversions of items of several bytes to floats.
[[nodiscard]] TypedKernel<std::byte*, const std::uint32_t*, std::uint32_t> seam_kernel(Conversion conversion);
[[nodiscard]] LaunchShape seam_shape(Device device, std::uint32_t count);

}  // namespace headrace::ingest
