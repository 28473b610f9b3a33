#pragma once

#include <cstddef>
#include <cstdint>

#include "headrace/device/group.hpp"
#include "ingest/line.hpp"

namespace headrace::ingest {

/// Payloads of one length that are evenly spaced in the ring and contiguous in a frame, as nearly all packets of a bulk
/// transfer are. One description covers them all, while a list of parts would take 1% of a link.
struct EvenRun {
  std::byte* to = nullptr;
  const std::byte* from = nullptr;
  std::uint64_t pitch = 0;  ///< Distance of the payloads in the ring; 0 while there is only one.
  std::uint32_t bytes = 0;  ///< Bytes of each payload.
  std::uint32_t count = 0;  ///< 0: there is no run.

  /// Appends the payloads of `next` if they continue this run evenly.
  [[nodiscard]] bool extend(const EvenRun& next) noexcept {
    if (next.bytes != bytes || next.to != to + std::uint64_t{count} * bytes || next.from <= from) return false;
    const auto distance = static_cast<std::uint64_t>(next.from - from);
    const std::uint64_t common = count == 1 ? distance : pitch;
    if (distance != count * common || (next.count > 1 && next.pitch != common)) return false;
    pitch = common;
    count += next.count;
    return true;
  }
};

/// How the payloads of a run are cut: all into the same number of parts, which begin on lines of the target.
struct EvenCut {
  std::uint32_t parts = 1;  ///< Parts of a payload.
  std::uint32_t bytes = 0;  ///< Bytes of a part, counted from the line in which the payload begins: whole lines.

  EvenCut() noexcept = default;
  /// No part is longer than `most`, which is at least some KiB.
  EvenCut(std::uint32_t payload_bytes, std::uint32_t most) noexcept
      : parts((payload_bytes + 2 * kLineBytes - 1) / most + 1),
        bytes(((payload_bytes + kLineBytes - 1) / parts + kLineBytes) / kLineBytes * kLineBytes) {}
};

/// Part `index` of run.count * cut.parts. None is empty.
[[nodiscard]] HEADRACE_HD inline Part part_of(const EvenRun& run, const EvenCut& cut, std::uint32_t index) noexcept {
  const std::uint32_t which = index / cut.parts;
  const std::uint32_t number = index % cut.parts;
  std::byte* const to = run.to + std::uint64_t{which} * run.bytes;
  const auto skew = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(to) % kLineBytes);
  const std::uint32_t begin = number == 0 ? 0 : number * cut.bytes - skew;
  const std::uint32_t end = number + 1 == cut.parts ? run.bytes : (number + 1) * cut.bytes - skew;
  return {to + begin, run.from + which * run.pitch + begin, end - begin};
}

/// The argument of a kernel: the runs that it copies.
struct EvenRuns {
  static constexpr std::uint32_t kMax = 8;

  struct One {
    EvenRun run;
    EvenCut cut;
    std::uint32_t first = 0;  ///< The number of its first part.
  };
  One runs[kMax];
  std::uint32_t count = 0;
  std::uint32_t parts = 0;  ///< Parts of all of them together.

  /// Adds a run whose parts are at most `most` bytes long. Requires: count < kMax.
  void add(const EvenRun& run, std::uint32_t most) noexcept {
    const EvenCut cut(run.bytes, most);
    runs[count++] = {run, cut, parts};
    parts += run.count * cut.parts;
  }
};

/// Part `index` of all.
[[nodiscard]] HEADRACE_HD inline Part part_of(const EvenRuns& runs, std::uint32_t index) noexcept {
  EvenRuns::One one = runs.runs[0];
  // Unrolled, so that the compiler knows the indices: otherwise the runs would be read from memory.
#if defined(__CUDA_ARCH__)
#pragma unroll
#endif
  for (std::uint32_t r = 1; r < EvenRuns::kMax; ++r) {
    if (r < runs.count && index >= runs.runs[r].first) one = runs.runs[r];
  }
  return part_of(one.run, one.cut, index - one.first);
}

}  // namespace headrace::ingest
