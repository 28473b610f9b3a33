#pragma once

#include <cstdint>

#include "headrace/device/kernel.hpp"
#include "headrace/ingest/detail/conversion.hpp"
#include "ingest/builder/even_run.hpp"
#include "ingest/builder/say_done.hpp"

/// The kernels that copy lists of parts. Each takes (const Part* parts, uint32_t count, uint32_t per_team,
/// DoneArgument done): `parts` is memory that the kernel reaches; none is empty.
namespace headrace::ingest {

using PartsKernel = TypedKernel<const Part*, std::uint32_t, std::uint32_t, DoneArgument>;

/// The longest list that one launch takes.
inline constexpr std::uint32_t kPartsMax = 1U << 30;

/// What a team loads in one round. A burst of no more than kShortBytes does not fill a device with several rounds a
/// team, each of which takes as long as the way to the ring and back: its parts are no longer than that.
inline constexpr std::uint32_t kRoundBytes = 2048;
inline constexpr std::uint64_t kShortBytes = std::uint64_t{1} << 20;

/// Parts of one length, on the average, that a team should take: one round of loads of a short burst, several of
/// others, so that reading the list costs little beside them.
[[nodiscard]] std::uint32_t parts_per_team(std::uint64_t bytes, std::uint32_t count) noexcept;

[[nodiscard]] PartsKernel gather_kernel();
/// Where lists are gathered on a CPU device, several items share the parts.
[[nodiscard]] LaunchShape gather_shape(Device device, std::uint32_t count, std::uint32_t per_team);

/// (EvenRuns runs, uint32_t per_team, DoneArgument done): the same for runs of payloads, in the shape for their parts.
[[nodiscard]] TypedKernel<EvenRuns, std::uint32_t, DoneArgument> even_kernel();

/// (DoneArgument done): says that all before it is done, for those that cannot say it themselves. One block.
[[nodiscard]] TypedKernel<DoneArgument> say_kernel();

[[nodiscard]] PartsKernel block_kernel();
[[nodiscard]] LaunchShape block_shape(Device device, std::uint32_t count);

/// For a CUDA device alone, of compute capability 9.0 or later. `per_team` is not looked at.
[[nodiscard]] PartsKernel bulk_kernel();
[[nodiscard]] LaunchShape bulk_shape(Device device, std::uint32_t count);

/// Converts. A part is whole items, or one byte of an item that begins or ends in another part (see
/// for_each_converted_part()), which goes as it is.
[[nodiscard]] PartsKernel convert_kernel(Conversion conversion);
/// (byte* items, const uint32_t* which, uint32_t count): the items whose two bytes came in different parts, where they
/// lie as they came. Only for conversions of items of several bytes to floats.
[[nodiscard]] TypedKernel<std::byte*, const std::uint32_t*, std::uint32_t> seam_kernel(Conversion conversion);
[[nodiscard]] LaunchShape seam_shape(Device device, std::uint32_t count);

}  // namespace headrace::ingest
