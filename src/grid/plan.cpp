#include "grid/plan.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "headrace/base/error.hpp"

namespace headrace::grid {

namespace {

constexpr std::uint32_t kThreads = 256;
constexpr std::uint32_t kLanesMaxLog2 = 6;
constexpr std::uint64_t kBlocksMax = 1 << 20;

/// What of an own box is within `width` of a side with a neighbour, in boxes that do not overlap, and what is not.
struct Split {
  std::vector<Box> border;
  Box interior;
};

[[nodiscard]] Split split(const Box& own, const Layers& neighbours, const Layers& width) {
  Split made{.border = {}, .interior = own};
  Box& rest = made.interior;
  // Along the slowest axis first, so that the largest pieces are contiguous.
  for (std::size_t axis = 3; axis-- > 0;) {
    Box low = rest;
    low.high[axis] =
        neighbours.low[axis] != 0 ? std::min(rest.low[axis] + width.low[axis], rest.high[axis]) : rest.low[axis];
    rest.low[axis] = low.high[axis];
    Box high = rest;
    high.low[axis] =
        neighbours.high[axis] != 0 ? std::max(rest.high[axis] - width.high[axis], rest.low[axis]) : rest.high[axis];
    rest.high[axis] = high.low[axis];
    if (!low.empty()) made.border.push_back(low);
    if (!high.empty()) made.border.push_back(high);
  }
  return made;
}

class Planner {
 public:
  Planner(const Decomposition& decomposition, std::size_t part, const Flow& flow, const PartLayout& layout,
          const Restrictions& only)
      : flow_(flow), layout_(layout), only_(only), extent_(decomposition.extent()) {
    neighbours_ = decomposition.neighbours(part);
    // What a neighbour has as ghosts on its high side is at this part's low side. And what is not border must not
    // reach ghosts, for they are written while it is computed.
    const Layers sent{.low = flow.ghosts.high, .high = flow.ghosts.low};
    split_ = split(layout.own, neighbours_, wider(sent, flow.tail_reach));
  }

  [[nodiscard]] CyclePlan plan(const Cycle& cycle) const {
    CyclePlan made;
    const std::size_t last = cycle.beyond.size() - 1;
    made.body.resize(cycle.beyond.size());
    for (std::size_t step = 0; step <= last; ++step) {
      for (std::size_t phase = 0; phase < only_.size(); ++phase) {
        if (step == last && phase >= flow_.tail) {
          add(made.border, phase, split_.border);
          add(made.interior, phase, {split_.interior});
        } else {
          add(made.body[step], phase, {reached(cycle.beyond[step][phase])});
        }
      }
    }
    return made;
  }

 private:
  [[nodiscard]] Box reached(const Layers& beyond) const {
    return layout_.own.grow(beyond).intersect(Box::whole(extent_));
  }

  void add(std::vector<PhaseLaunch>& to, std::size_t phase, const std::vector<Box>& boxes) const {
    std::vector<Box> kept;
    for (const Box& box : boxes) {
      if (!only_[phase]) kept.push_back(box);
      if (only_[phase]) {
        for (const Box& allowed : *only_[phase]) kept.push_back(box.intersect(allowed));
      }
    }
    std::erase_if(kept, [](const Box& box) { return box.empty(); });
    for (std::size_t first = 0; first < kept.size(); first += Region::kBoxesMax) {
      const std::size_t count = std::min<std::size_t>(Region::kBoxesMax, kept.size() - first);
      to.push_back(launch_of(phase, {kept.begin() + static_cast<std::ptrdiff_t>(first),
                                     kept.begin() + static_cast<std::ptrdiff_t>(first + count)}));
    }
  }

  /// As many neighbouring threads in a row as fit the widest box; a block for each so many cells of the largest.
  [[nodiscard]] PhaseLaunch launch_of(std::size_t phase, const std::vector<Box>& boxes) const {
    PhaseLaunch made{.phase = phase, .region = layout_.region(extent_), .shape = {}};
    std::uint32_t lanes_log2 = 0;
    for (std::size_t b = 0; b < boxes.size(); ++b) {
      made.region.boxes[b] = layout_.local(boxes[b]);
      while (lanes_log2 < kLanesMaxLog2 && std::int64_t{1} << lanes_log2 < boxes[b].size(0)) ++lanes_log2;
    }
    made.region.lanes_log2 = static_cast<std::int32_t>(lanes_log2);
    std::uint64_t blocks = 1;
    for (const Box& box : boxes) {
      const auto across = (static_cast<std::uint64_t>(box.size(0)) + (1U << lanes_log2) - 1) >> lanes_log2;
      const auto rows = static_cast<std::uint64_t>(box.size(1) * box.size(2));
      const std::uint64_t rows_at_once = kThreads >> lanes_log2;
      blocks = std::max(blocks, across * ((rows + rows_at_once - 1) / rows_at_once));
    }
    made.shape = {.blocks = static_cast<std::uint32_t>(std::min(blocks, kBlocksMax)),
                  .threads = kThreads,
                  .items = static_cast<std::uint32_t>(boxes.size())};
    return made;
  }

  const Flow& flow_;
  const PartLayout& layout_;
  const Restrictions& only_;
  Extent extent_;
  Layers neighbours_;
  Split split_;
};

}  // namespace

std::vector<CyclePlan> plan_part(const Decomposition& decomposition, std::size_t part, const Flow& flow,
                                 const PartLayout& layout, const Restrictions& only) {
  const Planner planner(decomposition, part, flow, layout, only);
  std::vector<CyclePlan> plans;
  for (const Cycle& cycle : flow.cycles) plans.push_back(planner.plan(cycle));
  return plans;
}

void require_restriction(const StencilProgram& program, int phase, const std::vector<Box>& boxes,
                         const Extent& extent) {
  if (phase < 0 || static_cast<std::size_t>(phase) >= program.phases.size()) {
    throw UsageError(
        fmt::format("stencil {} has phases 0 to {}, not {}", program.name, program.phases.size() - 1, phase));
  }
  const Phase& its = program.phases[static_cast<std::size_t>(phase)];
  if (!its.writes.within(its.reads)) {
    throw UsageError(
        fmt::format("phase {} of stencil {} cannot be restricted: it writes a field that it does not "
                    "declare to read, so what it leaves as it was would not be kept right; add the field to "
                    "the phase's reads",
                    phase, program.name));
  }
  for (std::size_t b = 0; b < boxes.size(); ++b) {
    if (boxes[b].empty() || !Box::whole(extent).contains(boxes[b])) {
      throw UsageError(fmt::format("phase {} cannot be restricted to {}: it must have cells, all in the domain of {}",
                                   phase, to_string(boxes[b]), to_string(extent)));
    }
    for (std::size_t other = 0; other < b; ++other) {
      if (boxes[b].intersect(boxes[other]).empty()) continue;
      throw UsageError(fmt::format("phase {} cannot be restricted to boxes that overlap: {} and {}", phase,
                                   to_string(boxes[other]), to_string(boxes[b])));
    }
  }
}

}  // namespace headrace::grid
