#pragma once

#include <cstddef>
#include <cstdint>

#include "headrace/device/group.hpp"
#include "ingest/line.hpp"

namespace headrace::ingest {

/// Payloads of one length, as far apart from each other in the ring as all others are, that follow each other in a
/// frame: what nearly every packet of a bulk transfer is. One description serves them all, where a list of parts would
/// take 1% of a link.
struct EvenRun {
  std::byte* to = nullptr;
  const std::byte* from = nullptr;
  std::uint64_t pitch = 0;  ///< From payload to payload in the ring; 0 as long as there is one.
  std::uint32_t bytes = 0;  ///< Bytes of each of them.
  std::uint32_t count = 0;  ///< 0: there is no run.

  /// Takes the payloads of `next` where they go on like those before.
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

/// How the payloads of a run are cut: each into as many parts, that begin on lines of the target.
struct EvenCut {
  std::uint32_t parts = 1;  ///< Parts of a payload.
  std::uint32_t bytes = 0;  ///< Bytes of a part, from the line that the payload begins in: whole lines.

  EvenCut() noexcept = default;
  /// No part is longer than `most`, some KiB at least.
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

/// Runs that one kernel copies, as its argument.
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

  /// There is room; no part is longer than `most`.
  void add(const EvenRun& run, std::uint32_t most) noexcept {
    const EvenCut cut(run.bytes, most);
    runs[count++] = {run, cut, parts};
    parts += run.count * cut.parts;
  }
};

/// Part `index` of all.
[[nodiscard]] HEADRACE_HD inline Part part_of(const EvenRuns& runs, std::uint32_t index) noexcept {
  EvenRuns::One one = runs.runs[0];
  // Numbers of runs that the compiler knows: else they would be looked up in memory.
#if defined(__CUDA_ARCH__)
#pragma unroll
#endif
  for (std::uint32_t r = 1; r < EvenRuns::kMax; ++r) {
    if (r < runs.count && index >= runs.runs[r].first) one = runs.runs[r];
  }
  return part_of(one.run, one.cut, index - one.first);
}

}  // namespace headrace::ingest
