#include "grid/wave.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>
#include <utility>

#include "grid/lags.hpp"

namespace headrace::grid {

namespace {

/// Values that the front takes at a time. Calls for fewer would cost more than the work, and more would not stay in the
/// cache until the next phase.
constexpr std::int64_t kFrontBytes = 64 << 10;

[[nodiscard]] FieldSet in_slots(FieldSet its_fields, const FieldTable& table) noexcept {
  FieldSet found;
  for (int field = 0; field < kFieldsMax; ++field) {
    if (its_fields.contains(field)) found = found | fields(static_cast<int>(table.slots[field]));
  }
  return found;
}

void swap_fields(FieldTable& table, std::span<const Swap> swaps) noexcept {
  for (const Swap& its : swaps) std::swap(table.slots[its.first], table.slots[its.second]);
}

/// The fields that a step uses in most cells.
[[nodiscard]] int fields_in_use(const StencilProgram& program) {
  FieldSet found;
  for (std::size_t p = 0; p < program.phases.size(); ++p) {
    const Phase& phase = program.phases[p];
    if (!program.only[p]) found = found | phase.reads | phase.neighbours | phase.writes;
  }
  return std::popcount(found.mask);
}

}  // namespace

/// Runs a wave as one launch. It has no CUDA entry.
struct Wave::Kernel {
  static constexpr const char* kName = "grid_wave";

  template <class Group>
  static void run(const Group& /*group*/, const Wave* wave, std::byte* stencil, const FieldTable& table,
                  std::uint64_t step) {
    wave->run(stencil, table, step);
  }
};

Wave::Wave(const StencilProgram& program, std::span<const Launches> steps) : swaps_(program.swaps) {
  begin_ = std::numeric_limits<std::int32_t>::max();
  std::int32_t planes = 1;
  for (const Launches& launches : steps) {
    for (const PhaseLaunch& launch : launches.phases) {
      for (std::uint32_t b = 0; b < launch.shape.items; ++b) planes = std::max(planes, launch.region.boxes[b].size[2]);
    }
  }
  axis_ = planes > 1 ? 2 : 1;
  FieldTable table;
  std::iota(std::begin(table.slots), std::end(table.slots), std::uint8_t{0});
  Lags lags(axis_);
  std::int64_t row_values = 0;
  for (std::size_t step = 0; step < steps.size(); ++step) {
    std::int64_t lag = 0;
    const PhaseLaunch* before = nullptr;
    for (const PhaseLaunch& launch : steps[step].phases) {
      const Phase& phase = program.phases[launch.phase];
      // Launches of one phase differ only in their boxes.
      if (before == nullptr || before->phase != launch.phase) {
        lag = lags.next(in_slots(phase.reads, table), in_slots(phase.neighbours, table), in_slots(phase.writes, table),
                        phase.reach);
      }
      before = &launch;
      Stage& stage = stages_.emplace_back();
      stage.run = program.kernels[launch.phase].cpu_entry();
      stage.step = step;
      stage.lag = static_cast<std::int32_t>(lag);
      stage.boxes = launch.shape.items;
      stage.region = launch.region;
      stage.low = std::numeric_limits<std::int32_t>::max();
      stage.high = std::numeric_limits<std::int32_t>::min();
      for (const LocalBox& box : std::span(launch.region.boxes).first(stage.boxes)) {
        stage.low = std::min(stage.low, box.low[axis_]);
        stage.high = std::max(stage.high, box.low[axis_] + box.size[axis_]);
        row_values = std::max(row_values, axis_ == 2 ? std::int64_t{box.size[0]} * box.size[1] : box.size[0]);
      }
      begin_ = std::min(begin_, stage.low + stage.lag);
      end_ = std::max(end_, stage.high + stage.lag);
    }
    swap_fields(table, swaps_);
  }
  const std::int64_t row_bytes = row_values * static_cast<std::int64_t>(program.value_bytes) * fields_in_use(program);
  rows_ = static_cast<std::int32_t>(
      std::clamp<std::int64_t>(kFrontBytes / std::max<std::int64_t>(row_bytes, 1), 1, std::max(end_ - begin_, 1)));
}

Status Wave::launch(StreamRef stream, std::byte* stencil, const FieldTable& table, std::uint64_t step) const noexcept {
  static const auto kernel = make_kernel<Kernel, const Wave*, std::byte*, FieldTable, std::uint64_t>();
  return headrace::launch(stream, kernel, {}, this, stencil, table, step);
}

void Wave::run(std::byte* stencil, FieldTable table, std::uint64_t step) const noexcept {
  for (std::int32_t front = begin_; front < end_; front += rows_) {
    FieldTable its = table;
    std::size_t swapped = 0;
    for (const Stage& stage : stages_) {
      for (; swapped < stage.step; ++swapped) swap_fields(its, swaps_);
      run(stage, stencil, its, step, front);
    }
  }
}

/// Does the rows of a stage that lie between the front and `rows_` rows above it, less the lag.
void Wave::run(const Stage& stage, std::byte* stencil, FieldTable& table, std::uint64_t step,
               std::int32_t front) const noexcept {
  const std::int32_t low = front - stage.lag;
  const std::int32_t high = low + rows_;
  if (high <= stage.low || low >= stage.high) return;
  Region region = stage.region;
  region.step = step + stage.step;
  std::uint32_t items = 0;
  for (std::uint32_t b = 0; b < stage.boxes; ++b) {
    const LocalBox& box = stage.region.boxes[b];
    const std::int32_t from = std::max(low, box.low[axis_]);
    const std::int32_t to = std::min(high, box.low[axis_] + box.size[axis_]);
    if (from >= to) continue;
    region.boxes[items] = box;
    region.boxes[items].low[axis_] = from;
    region.boxes[items].size[axis_] = to - from;
    ++items;
  }
  void* arguments[] = {stencil, &table, &region};
  for (std::uint32_t item = 0; item < items; ++item) stage.run(CpuGroup(0, 1, item, items), arguments);
}

}  // namespace headrace::grid
