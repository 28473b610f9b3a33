#include "grid/runs.hpp"

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "headrace/grid/detail/sweep_tasks.hpp"

namespace headrace::grid {

namespace {

/// Fewest rows in a run. A run costs as many additional rows as the pass reaches beyond it.
constexpr std::int64_t kRowsMin = 8;
constexpr std::int64_t kRowsMax = 128;
/// If a pass reaches far, a run may have up to this multiple of the rows that it reaches.
constexpr std::int64_t kReaches = 32;

constexpr std::int32_t kTeamThreads = 32;
constexpr std::int64_t kTeams = kSweepThreads / kTeamThreads;  // of a block
constexpr std::int32_t kUnitBytes = 16;                        // of a row, for each thread

[[nodiscard]] std::int64_t over(std::int64_t value, std::int64_t unit) noexcept { return (value + unit - 1) / unit; }

/// The number of strips in all planes, as SweepKernel cuts them on CUDA.
[[nodiscard]] std::int64_t strips_of(const Box& box, const Layers& halo, const PartLayout& layout) {
  const std::int32_t unit = kUnitBytes / static_cast<std::int32_t>(layout.value_bytes);
  const LocalBox local = layout.local(box);
  const auto columns = TeamColumns::reaching(kTeamThreads * unit, unit, halo.low[0], halo.high[0]);
  return SweepTasks(local, local.size[1], columns).count();
}

struct Strips {
  std::int64_t count;
  std::int64_t rows;  ///< Rows of the box.
  [[nodiscard]] std::int64_t blocks(std::int64_t run) const { return over(count * over(rows, run), kTeams); }
};

[[nodiscard]] std::int64_t blocks_of(std::span<const Strips> boxes, std::int64_t run) {
  std::int64_t blocks = 0;
  for (const Strips& box : boxes) blocks += box.blocks(run);
  return blocks;
}

/// The run length for which the device goes through the fewest rows. Each wave goes through the rows of a run and those
/// that the pass reaches beyond it.
[[nodiscard]] std::int64_t best_rows(std::span<const Strips> boxes, std::int64_t reach, std::int64_t at_once) {
  std::int64_t best = kRowsMin;
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (std::int64_t run = kRowsMin; run <= std::max(kRowsMax, kReaches * reach); ++run) {
    const std::int64_t rows = over(blocks_of(boxes, run), at_once) * (run + reach);
    if (rows >= least) continue;
    best = run;
    least = rows;
  }
  return best;
}

/// Length of the runs of chained passes, in multiples of the rows that one pass reaches.
constexpr std::int64_t kChainedReachesMin = 6;
constexpr std::int64_t kChainedReachesMax = 50;
/// Fewest tasks of a chained pass for each ten that the device does at once. With fewer, teams wait for their
/// neighbours.
constexpr std::int64_t kChainedTasksPerTen = 14;

}  // namespace

LaunchShape cut_into_runs(SweepRegion& region, std::span<const Box> boxes, const Layers& halo, const PartLayout& layout,
                          std::uint32_t blocks_at_once, std::uint32_t blocks_beside) {
  assert(!boxes.empty() && boxes.size() <= SweepRegion::kBoxesMax && blocks_at_once > 0);
  Strips all[SweepRegion::kBoxesMax] = {};
  const std::span<const Strips> cut = std::span(all).first(boxes.size());
  for (std::size_t b = 0; b < boxes.size(); ++b) {
    all[b] = {.count = strips_of(boxes[b], halo, layout), .rows = boxes[b].size(1)};
  }
  const std::int64_t reach = halo.low[1] + halo.high[1];
  const std::int64_t left = std::int64_t{blocks_at_once} - blocks_beside;
  std::int64_t rows = best_rows(cut, reach, blocks_at_once);
  if (left > 0 && blocks_of(cut, rows) <= blocks_at_once) {
    const std::int64_t longer = best_rows(cut, reach, left);
    if (blocks_of(cut, longer) <= left) rows = longer;
  }
  std::uint32_t blocks = 0;
  for (std::size_t b = 0; b < boxes.size(); ++b) {
    region.boxes[b] = layout.local(boxes[b]);
    region.rows[b] = static_cast<std::int32_t>(rows);
    region.blocks[b] = static_cast<std::uint32_t>(cut[b].blocks(rows));
    blocks += region.blocks[b];
  }
  return {.blocks = blocks, .threads = kSweepThreads, .items = 1};
}

void cut_into_chain(SweepCut& cut, const Box& box, const Layers& halo, const PartLayout& layout,
                    std::uint32_t blocks_at_once) {
  assert(!box.empty() && blocks_at_once > 0);
  const Strips strips{.count = strips_of(box, halo, layout), .rows = box.size(1)};
  const auto tasks_of = [&](std::int64_t run) { return strips.count * over(strips.rows, run); };
  const std::int64_t reach = halo.low[1] + halo.high[1];
  if (reach == 0) return;  // a stencil of one dimension has single rows
  const std::int64_t tasks_min = over(blocks_at_once * kTeams * kChainedTasksPerTen, 10);
  std::int64_t best = 0;
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (std::int64_t run = kChainedReachesMin * reach; run <= kChainedReachesMax * reach; ++run) {
    const std::int64_t rows = tasks_of(run) * (run + reach);
    if (tasks_of(run) < tasks_min || rows >= least) continue;
    best = run;
    least = rows;
  }
  if (best == 0) return;
  cut.region.boxes[0] = layout.local(box);
  cut.region.rows[0] = static_cast<std::int32_t>(best);
  cut.region.blocks[0] = static_cast<std::uint32_t>(strips.blocks(best));
  cut.shape = {.blocks = cut.region.blocks[0], .threads = kSweepThreads, .items = 1};
  cut.chained = static_cast<std::size_t>(tasks_of(best));
}

LaunchShape cut_into_items(SweepRegion& region, std::span<const Box> boxes, const PartLayout& layout) {
  assert(!boxes.empty() && boxes.size() <= SweepRegion::kBoxesMax);
  for (std::size_t b = 0; b < boxes.size(); ++b) {
    region.boxes[b] = layout.local(boxes[b]);
    region.rows[b] = static_cast<std::int32_t>(kRowsMax);
    region.blocks[b] = 1;
  }
  return {.blocks = 1, .threads = kSweepThreads, .items = static_cast<std::uint32_t>(boxes.size())};
}

}  // namespace headrace::grid
