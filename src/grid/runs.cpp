#include "grid/runs.hpp"

#include <algorithm>

namespace headrace::grid {

namespace {

/// Rows of a run cost as many more as the steps of a pass reach beyond them.
constexpr std::int64_t kRowsMin = 8;
constexpr std::int64_t kRowsMax = 128;
/// Blocks come to their ends at different times, so the last runs of a pass are short: so many rows for each of those
/// that are done at once are done in runs of twice so many of the rows that the pass reaches beyond, and then so many.
constexpr std::int64_t kRowsFine = 16;
constexpr std::int64_t kRowsFinest = 8;
constexpr std::int64_t kReaches = 8;

constexpr std::int64_t kTeamThreads = 32;
constexpr std::int64_t kTeams = kSweepThreads / kTeamThreads;
constexpr std::int64_t kUnitBytes = 16;  ///< That a thread has of a row.

[[nodiscard]] std::int64_t over(std::int64_t value, std::int64_t unit) noexcept { return (value + unit - 1) / unit; }

/// Strips of a box, as SweepKernel cuts it on CUDA.
[[nodiscard]] std::int64_t strips_of(const LocalBox& box, const Layers& halo, std::size_t value_bytes) {
  const std::int64_t unit = kUnitBytes / static_cast<std::int64_t>(value_bytes);
  const std::int64_t stored = unit * (kTeamThreads - over(halo.low[0], unit) - over(halo.high[0], unit));
  return over((box.low[0] % unit + unit) % unit + box.size[0], stored);
}

}  // namespace

LaunchShape cut_into_runs(SweepRegion& region, std::span<const Box> boxes, const Layers& halo, const PartLayout& layout,
                          std::uint32_t blocks) {
  region.rows = static_cast<std::int32_t>(kRowsMax);
  region.count = 0;
  const auto add = [&](const Box& box, int finer) {
    if (box.empty()) return;
    region.boxes[region.count] = layout.local(box);
    region.finer[region.count++] = static_cast<std::uint8_t>(finer);
  };
  if (blocks == 0) {
    for (const Box& box : boxes) add(box, 0);
    return {.blocks = 1, .threads = kSweepThreads};
  }
  const std::int64_t at_once = blocks * kTeams;
  const auto strips = [&](const Box& box) {
    return strips_of(layout.local(box), halo, layout.value_bytes) * box.size(2);
  };
  std::int64_t rows = 0;
  for (const Box& box : boxes) rows += strips(box) * box.size(1);
  region.rows = static_cast<std::int32_t>(std::clamp(rows / at_once, kRowsMin, kRowsMax));
  for (const Box& box : boxes.first(boxes.size() - 1)) add(box, 0);
  Box last = boxes.back();
  int finest = 0;
  while (region.rows >> (finest + 1) >= kReaches * std::max<std::int64_t>(halo.low[1] + halo.high[1], 1)) ++finest;
  if (strips(last) * last.size(1) / at_once >= kRowsMax && finest > 0) {
    // The last that many rows, whole runs before them.
    const auto cut_off = [&](std::int64_t most, std::int64_t run) {
      Box first = last;
      first.high[1] = std::max(last.low[1], last.high[1] - over(most * at_once, strips(last) * run) * run);
      last.low[1] = first.high[1];
      return first;
    };
    add(cut_off(kRowsFine + kRowsFinest, region.rows), 0);
    add(cut_off(kRowsFinest, region.rows >> (finest - 1)), finest - 1);
    add(last, finest);
  } else {
    add(last, 0);
  }
  std::int64_t count = 0;
  for (std::int32_t b = 0; b < region.count; ++b) {
    const LocalBox& box = region.boxes[b];
    const std::int64_t runs = over(box.size[1], region.rows >> region.finer[b]);
    count += over(strips_of(box, halo, layout.value_bytes) * runs * box.size[2], kTeams);
  }
  constexpr std::int64_t kBlocksMax = 1 << 20;
  return {.blocks = static_cast<std::uint32_t>(std::min(count, kBlocksMax)), .threads = kSweepThreads};
}

}  // namespace headrace::grid
