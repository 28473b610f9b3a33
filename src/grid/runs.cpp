#include "grid/runs.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace headrace::grid {

namespace {

// Of a run; it costs as many rows more as the steps of a pass reach beyond it.
constexpr std::int64_t kRowsMin = 8;
constexpr std::int64_t kRowsMax = 128;
// The last runs of a pass have no fewer rows than so many times those that it reaches beyond them. So many rows for
// each team of a GPU are done in such runs, and so many before these in runs of twice as many.
constexpr std::int64_t kReaches = 8;
constexpr std::int64_t kShortRows = 12;
constexpr std::int64_t kMiddleRows = 24;

constexpr std::int64_t kTeamThreads = 32;
constexpr std::int64_t kTeams = 4;               // of a block
constexpr std::int64_t kTeamsAtOnce = 12 * 132;  // of an H200: warps of a multiprocessor, and how many those are
constexpr std::int64_t kUnitBytes = 16;          // of a row, that a thread has

[[nodiscard]] std::int64_t over(std::int64_t value, std::int64_t unit) noexcept { return (value + unit - 1) / unit; }

class Cutter {
 public:
  Cutter(SweepRegion& region, const Layers& halo, const PartLayout& layout)
      : region_(region), halo_(halo), layout_(layout) {}

  /// Each box is an item.
  [[nodiscard]] LaunchShape for_cpu(std::span<const Box> boxes) {
    for (const Box& box : boxes) add(box, kRowsMax, 1);
    return shape(1, boxes.size());
  }

  /// One item: blocks have the boxes one after the other.
  [[nodiscard]] LaunchShape for_cuda(std::span<const Box> boxes) {
    std::int64_t all = 0;  // rows of one team's width
    for (const Box& box : boxes) all += strips(box) * box.size(1);
    const std::int64_t rows = std::clamp(all / kTeamsAtOnce, kRowsMin, kRowsMax);
    const auto last = boxes.size() - 1;
    for (const Box& box : boxes.first(last)) add_for_cuda(box, rows);
    if (boxes.size() + 2 <= SweepRegion::kBoxesMax &&
        strips(boxes[last]) * boxes[last].size(1) / kTeamsAtOnce >= kRowsMax) {
      add_with_short_end(boxes[last]);
    } else {
      add_for_cuda(boxes[last], rows);
    }
    std::uint32_t blocks = 0;
    for (std::size_t b = 0; b < count_; ++b) blocks += region_.blocks[b];
    return shape(blocks, 1);
  }

 private:
  [[nodiscard]] static LaunchShape shape(std::uint32_t blocks, std::size_t items) {
    return {.blocks = blocks, .threads = kTeams * kTeamThreads, .items = static_cast<std::uint32_t>(items)};
  }

  void add(const Box& box, std::int64_t rows, std::int64_t blocks) {
    region_.boxes[count_] = layout_.local(box);
    region_.rows[count_] = static_cast<std::int32_t>(rows);
    region_.blocks[count_++] = static_cast<std::uint32_t>(blocks);
  }

  void add_for_cuda(const Box& box, std::int64_t rows) {
    if (box.empty()) return;
    add(box, rows, over(strips(box) * over(box.size(1), rows), kTeams));
  }

  void add_with_short_end(Box box) {
    const std::int64_t reach = std::max<std::int64_t>(halo_.low[1] + halo_.high[1], 1);
    std::int64_t least = kRowsMax;
    while (least / 2 >= kReaches * reach) least /= 2;
    // All but the last that many rows for a team, in whole runs.
    const auto cut = [&](std::int64_t short_rows, std::int64_t rows) {
      Box first = box;
      first.high[1] = std::max(box.low[1], box.high[1] - over(short_rows * kTeamsAtOnce, strips(box) * rows) * rows);
      box.low[1] = first.high[1];
      add_for_cuda(first, rows);
    };
    if (least < kRowsMax) {
      cut(kMiddleRows + kShortRows, kRowsMax);
      cut(kShortRows, 2 * least);
    }
    add_for_cuda(box, least);
  }

  /// Of all planes, as SweepKernel cuts them on CUDA.
  [[nodiscard]] std::int64_t strips(const Box& box) const {
    const std::int64_t unit = kUnitBytes / static_cast<std::int64_t>(layout_.value_bytes);
    const std::int64_t stored = unit * (kTeamThreads - over(halo_.low[0], unit) - over(halo_.high[0], unit));
    const std::int64_t first = layout_.local(box).low[0];
    return over((first % unit + unit) % unit + box.size(0), stored) * box.size(2);
  }

  SweepRegion& region_;
  const Layers& halo_;
  const PartLayout& layout_;
  std::size_t count_ = 0;
};

}  // namespace

LaunchShape cut_into_runs(SweepRegion& region, std::span<const Box> boxes, const Layers& halo, const PartLayout& layout,
                          DeviceKind kind) {
  Cutter cutter(region, halo, layout);
  return kind == DeviceKind::cpu ? cutter.for_cpu(boxes) : cutter.for_cuda(boxes);
}

}  // namespace headrace::grid
