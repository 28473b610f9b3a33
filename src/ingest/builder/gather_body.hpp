#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "headrace/device/group.hpp"
#include "ingest/line.hpp"

/// Headrace's own gather: how a team of threads copies a few parts. The lines of the targets are dealt to the threads,
/// so that a team copies one part of 4 KiB or thirty of 64 bytes in the same few rounds.
namespace headrace::ingest {

[[nodiscard]] HEADRACE_HD inline std::uint32_t count_bits(std::uint32_t mask) noexcept {
#if defined(__CUDA_ARCH__)
  return static_cast<std::uint32_t>(__popc(mask));
#else
  return static_cast<std::uint32_t>(std::popcount(mask));
#endif
}

/// Lines of `part`'s target, partial ones included.
[[nodiscard]] HEADRACE_HD inline std::uint32_t line_count(const Part& part) noexcept {
  const auto begin = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(part.to()) % kLineBytes);
  return part.bytes() == 0 ? 0 : (begin + part.bytes() + kLineBytes - 1) / kLineBytes;
}

/// The reference: every way must give this result.
HEADRACE_HD inline void copy_plainly(const Part& part) noexcept { memcpy(part.to(), part.from(), part.bytes()); }

struct LoadGlobal {
  [[nodiscard]] HEADRACE_HD Line operator()(const std::byte* from) const noexcept { return load_line(from); }
};

/// One line of a part's target in flight: the lines loaded for it, and which bytes are stored where.
struct LineCopy {
  std::byte* to = nullptr;  ///< Aligned.
  Line low{};
  Line high{};
  /// Three bytes, lowest first: where in low and high the line's first byte is, the first of its bytes to store, and
  /// the one after the last. Packed into one register, because registers limit how many threads load at once.
  std::uint32_t shape = 0;

  /// Loads only the lines that contain bytes of line `index`. `load_from` loads the line at an aligned address.
  template <class LoadFrom>
  HEADRACE_HD void load(const Part& part, std::uint32_t index, LoadFrom load_from) {
    const auto skew = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(part.to()) % kLineBytes);
    const std::uint32_t first = index * kLineBytes;  // of this line, from the first byte of the first line
    to = part.to() + first - skew;
    const std::uint32_t begin = index == 0 ? skew : 0;
    const std::uint32_t left = skew + part.bytes() - first;
    const std::uint32_t end = left < kLineBytes ? left : kLineBytes;
    const std::byte* const from = part.from() + first - skew;
    const auto offset = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(from) % kLineBytes);
    const std::byte* const line = from - offset;
    if (begin + offset < kLineBytes) low = load_from(line);
    if (end + offset > kLineBytes) high = load_from(line + kLineBytes);
    shape = offset | begin << 8 | end << 16;
  }

  HEADRACE_HD void store() const noexcept {
    constexpr std::uint32_t kWhole = kLineBytes << 16;
    const Line line = cut_line(low, high, shape & 0xff);
    if ((shape & ~0xffU) == kWhole) {
      store_line(to, line);
    } else {
      store_some(to, line, shape >> 8 & 0xff, shape >> 16);
    }
  }
};

/// Total bytes of a team's parts: at least two rounds of four lines per thread.
inline constexpr std::uint64_t kTeamBytes = 8192;
/// Most parts that a team takes: one for each of its threads.
inline constexpr std::uint32_t kTeamParts = 32;

/// How many of `count` parts with `bytes` bytes in total a team should take: several rounds of loads, so that reading
/// the list costs little in comparison.
[[nodiscard]] HEADRACE_HD inline std::uint32_t parts_of_team(std::uint64_t bytes, std::uint32_t count,
                                                             std::uint64_t team_bytes = kTeamBytes) noexcept {
  const std::uint64_t wanted = bytes == 0 ? 1 : (team_bytes * count + bytes / 2) / bytes;
  return wanted < 1 ? 1 : wanted > kTeamParts ? kTeamParts : static_cast<std::uint32_t>(wanted);
}

/// A team copies the parts of its threads. Each thread has at most one; the threads of lower rank have one that is not
/// empty. Every thread of the team calls this. Each has InFlight lines in flight before it stores the first.
template <std::uint32_t InFlight, class Group>
HEADRACE_HD void gather_team(const Group& group, const Part& mine) {
  const std::uint32_t lane = group.team_rank();
  const std::uint32_t lines = line_count(mine);
  std::uint32_t total = 0;
  const std::uint32_t before = group.team_sum_before(lines, total);
  std::uint32_t begun = 0;  // parts whose first line lies before the current window of lines
  for (std::uint32_t base = 0; base < total; base += InFlight * Group::kTeam) {
    LineCopy copies[InFlight];
#if defined(__CUDA_ARCH__)
#pragma unroll
#endif
    for (std::uint32_t k = 0; k < InFlight; ++k) {
      const std::uint32_t window = base + k * Group::kTeam;
      // Each part marks where in the window it begins; a thread then counts the marks up to its own line.
      const std::uint32_t at = before - window;
      const std::uint32_t starts = group.team_or(lines != 0 && at < Group::kTeam ? 1U << at : 0U);
      const std::uint32_t here = count_bits(starts & ((2U << lane) - 1));
      const std::uint32_t owner = begun + here - 1;
      begun += count_bits(starts);
      const Part part = group.team_from(mine, owner);
      const std::uint32_t first = group.team_from(before, owner);
      const std::uint32_t line = window + lane;
      if (line < total) copies[k].load(part, line - first, LoadGlobal{});
    }
#if defined(__CUDA_ARCH__)
#pragma unroll
#endif
    for (std::uint32_t k = 0; k < InFlight; ++k) copies[k].store();
  }
}

/// The same for `count` parts in a row, at most as many as the team has threads.
template <std::uint32_t InFlight, class Group>
HEADRACE_HD void gather_team(const Group& group, const Part* parts, std::uint32_t count) {
  gather_team<InFlight>(group, group.team_rank() < count ? parts[group.team_rank()] : Part{});
}

/// A team copies part_at(0) to part_at(count - 1), none of them empty. `count` is at most its number of threads; a team
/// of one thread takes any number.
template <std::uint32_t InFlight, class Group, class PartAt>
HEADRACE_HD void gather(const Group& group, std::uint32_t count, PartAt part_at) {
  if constexpr (Group::kTeam == 1) {
    for (std::uint32_t i = 0; i < count; ++i) copy_plainly(part_at(i));
  } else {
    gather_team<InFlight>(group, group.team_rank() < count ? part_at(group.team_rank()) : Part{});
  }
}

}  // namespace headrace::ingest
