#include "grid/launches.hpp"

#include <algorithm>
#include <utility>

namespace headrace::grid {

namespace {

constexpr std::uint32_t kPhaseThreads = 256;
constexpr std::uint32_t kLanesMaxLog2 = 6;
constexpr std::uint64_t kBlocksMax = 1 << 20;
constexpr std::int64_t kVectorBytes = 16;
constexpr std::int64_t kVectorCellsMin = 32;  // of a row: in a narrower one threads would idle

[[nodiscard]] bool is_in(const std::vector<int>& phases, std::size_t phase) {
  return std::ranges::find(phases, static_cast<int>(phase)) != phases.end();
}

/// Passes the boxes that have cells to `take`, at most `most` at a time.
template <class Take>
void in_groups(std::vector<Box> boxes, std::size_t most, const Take& take) {
  std::erase_if(boxes, [](const Box& box) { return box.empty(); });
  for (std::size_t first = 0; first < boxes.size(); first += most) {
    take(std::span(boxes).subspan(first, std::min(most, boxes.size() - first)));
  }
}

}  // namespace

Launcher::Launcher(const PartLayout& layout, const StencilProgram& program, Device device, const Extent& extent)
    : layout_(layout), program_(program), device_(device), extent_(extent) {}

void Launcher::add_phase(Launches& to, std::size_t phase, std::vector<Box> boxes) const {
  in_groups(std::move(boxes), Region::kBoxesMax,
            [&](std::span<const Box> some) { to.phases.push_back(launch_of(phase, some)); });
}

void Launcher::add_pass(Launches& to, const SweepProgram& sweep, std::vector<Box> boxes, const Launches& beside) const {
  in_groups(std::move(boxes), SweepRegion::kBoxesMax,
            [&](std::span<const Box> some) { to.sweeps.push_back(sweep_of(sweep, some, beside)); });
}

std::uint32_t Launcher::blocks_at_once(const Kernel& kernel) const {
  return std::max(device_.resident_blocks_max(kernel, kSweepThreads), 1U);
}

/// A row takes as many neighbouring threads as fit the widest box. The number of blocks follows the largest box.
PhaseLaunch Launcher::launch_of(std::size_t phase, std::span<const Box> boxes) const {
  PhaseLaunch made{.phase = phase, .region = layout_.region(extent_), .shape = {}};
  std::int64_t widest = 0;
  for (std::size_t b = 0; b < boxes.size(); ++b) {
    made.region.boxes[b] = layout_.local(boxes[b]);
    widest = std::max(widest, boxes[b].size(0));
  }
  const bool vectors = widest >= kVectorCellsMin && is_in(program_.vectored, phase);
  made.region.vectors = vectors ? 1 : 0;
  const auto unit = vectors ? kVectorBytes / static_cast<std::int64_t>(program_.value_bytes) : 1;
  // An upper bound: a box that begins within a vector has one more.
  const auto units = [unit](std::int64_t cells) { return (cells + 2 * (unit - 1)) / unit; };
  std::uint32_t lanes_log2 = 0;
  while (lanes_log2 < kLanesMaxLog2 && std::int64_t{1} << lanes_log2 < units(widest)) ++lanes_log2;
  made.region.lanes_log2 = static_cast<std::int32_t>(lanes_log2);
  std::uint64_t blocks = 1;
  for (const Box& box : boxes) {
    const auto across = (static_cast<std::uint64_t>(units(box.size(0))) + (1U << lanes_log2) - 1) >> lanes_log2;
    const auto rows = static_cast<std::uint64_t>(box.size(1) * box.size(2));
    const std::uint64_t rows_at_once = kPhaseThreads >> lanes_log2;
    blocks = std::max(blocks, across * ((rows + rows_at_once - 1) / rows_at_once));
  }
  made.shape = {.blocks = static_cast<std::uint32_t>(std::min(blocks, kBlocksMax)),
                .threads = kPhaseThreads,
                .items = static_cast<std::uint32_t>(boxes.size())};
  return made;
}

SweepLaunch Launcher::sweep_of(const SweepProgram& sweep, std::span<const Box> boxes, const Launches& beside) const {
  std::uint32_t plain = 0;
  std::uint32_t watched = 0;
  for (const SweepLaunch& launch : beside.sweeps) {
    plain += launch.plain.shape.blocks;
    watched += launch.watched.shape.blocks;
  }
  return {.plain = cut_for(sweep.kernel, sweep.halo, boxes, plain),
          .watched = program_.watched ? cut_for(sweep.watched, sweep.halo, boxes, watched) : SweepCut{}};
}

SweepCut Launcher::cut_for(const Kernel& kernel, const Layers& halo, std::span<const Box> boxes,
                           std::uint32_t blocks_beside) const {
  SweepCut made;
  const Region like = layout_.region(extent_);
  SweepRegion& region = made.region;
  std::ranges::copy(like.own_low, region.own_low);
  std::ranges::copy(like.own_size, region.own_size);
  std::ranges::copy(like.extent, region.extent);
  region.pitch = like.pitch;
  region.plane = like.plane;
  region.held = layout_.local(layout_.own.grow(layout_.pads).intersect(Box::whole(extent_)));
  if (device_.properties().host_cores) {
    made.shape = cut_into_items(region, boxes, layout_);
  } else {
    made.shape = cut_into_runs(region, boxes, halo, layout_, blocks_at_once(kernel), blocks_beside);
  }
  return made;
}

Status launch_phase(StreamRef stream, const StencilProgram& program, std::byte* stencil, const PhaseLaunch& launch,
                    FieldTable table, std::uint64_t step) noexcept {
  Region region = launch.region;
  region.step = step;
  void* arguments[] = {stencil, &table, &region};
  return stream.launch(program.kernels[launch.phase], launch.shape, arguments);
}

SweepPlaces places_of(const SweepProgram& sweep, const FieldTable& from,
                      std::span<const std::uint8_t, kFieldsMax> to) noexcept {
  SweepPlaces places{.from = from, .to = {}};
  std::ranges::copy(to, places.to);
  for (const Swap& its : sweep.renamed) {
    std::swap(places.from.slots[its.first], places.from.slots[its.second]);
    std::swap(places.to[its.first], places.to[its.second]);
  }
  return places;
}

Status launch_pass(StreamRef stream, const Kernel& kernel, std::byte* stencil, const SweepCut& cut, SweepPlaces places,
                   std::uint64_t step, SweepChain chain, SweepWatch* watch) noexcept {
  SweepRegion region = cut.region;
  region.step = step;
  LaunchShape shape = cut.shape;
  shape.early = chain.after > 0;
  void* arguments[] = {stencil, &places, &region, &chain, watch};
  return stream.launch(kernel, shape, std::span(arguments, watch != nullptr ? 5 : 4));
}

}  // namespace headrace::grid
