#include "grid/plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>

#include "grid/legs.hpp"
#include "grid/patches.hpp"
#include "headrace/base/error.hpp"

namespace headrace::grid {

namespace {

/// The cells of an own box within `width` of a side with a neighbour, in boxes that do not overlap, and the rest.
struct Split {
  std::vector<Box> border;
  Box interior;
};

[[nodiscard]] Split split(const Box& own, const Layers& neighbours, const Layers& width) {
  Split made{.border = {}, .interior = own};
  Box& rest = made.interior;
  // Cuts along the slowest axis first, so that the largest pieces are contiguous.
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
          const StencilProgram& program, Device device, bool waves)
      : flow_(flow),
        layout_(layout),
        program_(program),
        device_(device),
        waves_(waves),
        limit_(decomposition.with_images()),
        launcher_(layout, program, device, decomposition.extent()),
        only_(program.only) {
    neighbours_ = decomposition.neighbours(part);
    for (auto& boxes : only_) {
      if (boxes) boxes = near(*boxes, decomposition.shifts());
    }
    // A neighbour's ghosts on its high side lie at this part's low side. The interior must not read ghosts, because
    // they are written while it is computed.
    const Layers sent{.low = flow.ghosts.high, .high = flow.ghosts.low};
    split_ = split(layout.own, neighbours_, wider(sent, flow.tail_reach));
  }

  [[nodiscard]] CyclePlan plan(const Cycle& cycle, bool last_of_call) const {
    CyclePlan made;
    const std::size_t steps = cycle.beyond.size();
    std::size_t done = 0;
    for (const std::size_t swept : legs_of(program_, steps, last_of_call)) {
      Leg& leg = made.body.emplace_back();
      leg.steps = std::max<std::size_t>(swept, 1);
      if (swept > 0) leg.sweep = &*std::ranges::find(program_.sweeps, static_cast<int>(swept), &SweepProgram::steps);
      done += leg.steps;
      add_leg(made, leg, cycle, done - 1);
    }
    if (!device_.properties().host_cores) {
      chain(made);
    } else if (waves_) {
      made.wave = wave_of(cycle);
    }
    return made;
  }

 private:
  /// Chains the passes of a part without neighbours if all of a cycle's passes are of one kind and cover all of the
  /// part.
  void chain(CyclePlan& cycle) const {
    const SweepProgram* const sweep = cycle.body.front().sweep;
    const bool alone = cycle.border.sweeps.empty() && cycle.border.phases.empty();
    const bool alike =
        std::ranges::all_of(cycle.body, [&](const Leg& leg) { return leg.sweep == sweep && leg.patches.empty(); });
    if (sweep == nullptr || !alone || !alike) return;
    std::vector<Launches*> passes;
    for (Leg& leg : cycle.body) passes.push_back(&leg.launches);
    passes.back() = &cycle.interior;
    const auto is_pass = [](const Launches* its) { return its->phases.empty() && its->sweeps.size() == 1; };
    if (!std::ranges::all_of(passes, is_pass)) return;
    for (Launches* const its : passes) {
      SweepLaunch& launch = its->sweeps.front();
      cut_into_chain(launch.plain, layout_.own, sweep->halo, layout_, launcher_.blocks_at_once(sweep->kernel));
      if (!program_.watched) continue;
      cut_into_chain(launch.watched, layout_.own, sweep->halo, layout_, launcher_.blocks_at_once(sweep->watched));
    }
  }

  [[nodiscard]] Wave wave_of(const Cycle& cycle) const {
    std::vector<Launches> steps;
    for (const auto& beyond : cycle.beyond) {
      Launches& made = steps.emplace_back();
      for (std::size_t phase = 0; phase < program_.phases.size(); ++phase) add(made, phase, {reached(beyond[phase])});
    }
    return {program_, steps};
  }

  /// Adds the leg whose last step has index `step` in the cycle.
  void add_leg(CyclePlan& made, Leg& leg, const Cycle& cycle, std::size_t step) const {
    const bool last = step + 1 == cycle.beyond.size();
    const bool patched = leg.sweep != nullptr && !others_follow(program_, *leg.sweep);
    const std::vector<Box> patches = patched ? *leg.sweep->patches : std::vector<Box>();
    if (patched) add_patches(leg, patches, cycle, step);
    if (leg.sweep != nullptr && last) {
      launcher_.add_pass(made.border, *leg.sweep, outside(split_.border, patches));
      launcher_.add_pass(made.interior, *leg.sweep, outside(std::span(&split_.interior, 1), patches), made.border);
    } else if (leg.sweep != nullptr) {
      const Box all = reached(cycle.kept[step]);
      launcher_.add_pass(leg.launches, *leg.sweep, outside(std::span(&all, 1), patches));
    }
    // A pass reads nothing that it writes, so all of its phases are in the tail.
    const std::size_t tail = leg.sweep == nullptr ? flow_.tail : 0;
    for (std::size_t phase = 0; phase < program_.phases.size(); ++phase) {
      if (patched || (leg.sweep != nullptr && is_swept(program_, phase))) continue;
      if (last && phase >= tail) {
        add(made.border, phase, split_.border);
        add(made.interior, phase, {split_.interior});
      } else {
        add(leg.launches, phase, {reached(cycle.beyond[step][phase])});
      }
    }
  }

  /// Adds the steps of a leg whose last step has index `step` in the cycle, in all patches and as far beyond as they
  /// read.
  void add_patches(Leg& leg, std::span<const Box> patches, const Cycle& cycle, std::size_t step) const {
    const Flow flow = flow_of(program_, static_cast<int>(leg.steps));
    const auto grown = [&](const Layers& by, const Box& within) {
      std::vector<Box> boxes;
      for (const Box& patch : patches) {
        const Box kept = patch.intersect(reached(cycle.kept[step]));
        if (!kept.empty()) boxes.push_back(kept.grow(by).intersect(within));
      }
      return disjoint(boxes);
    };
    leg.copied = grown(flow.ghosts, reached(layout_.pads));
    leg.patches.resize(leg.steps);
    for (std::size_t s = 0; s < leg.steps; ++s) {
      const auto& beyond = cycle.beyond[step + 1 - leg.steps + s];
      for (std::size_t phase = 0; phase < program_.phases.size(); ++phase) {
        add(leg.patches[s], phase, grown(flow.cycles.back().beyond[s][phase], reached(beyond[phase])));
      }
    }
  }

  [[nodiscard]] Box reached(const Layers& beyond) const { return layout_.own.grow(beyond).intersect(limit_); }

  /// The boxes and their images that lie in the part or its ghosts.
  [[nodiscard]] std::vector<Box> near(std::span<const Box> boxes, std::span<const Offsets> shifts) const {
    std::vector<Box> found;
    for (const Box& box : boxes) {
      for (const Offsets& shift : shifts) {
        const Box image = moved(box, shift).intersect(reached(layout_.pads));
        if (!image.empty()) found.push_back(image);
      }
    }
    return found;
  }

  void add(Launches& to, std::size_t phase, const std::vector<Box>& boxes) const {
    const auto& only = only_[phase];
    std::vector<Box> kept;
    for (const Box& box : boxes) {
      if (!only) kept.push_back(box);
      if (only) {
        for (const Box& allowed : *only) kept.push_back(box.intersect(allowed));
      }
    }
    launcher_.add_phase(to, phase, std::move(kept));
  }

  const Flow& flow_;
  const PartLayout& layout_;
  const StencilProgram& program_;
  Device device_;
  bool waves_;
  Box limit_;  ///< Cells beyond it stay 0.
  Launcher launcher_;
  Restrictions only_;  ///< StencilProgram::only with images beyond periodic walls, as far as this part computes them.
  Layers neighbours_;
  Split split_;
};

}  // namespace

PartPlans plan_part(const Decomposition& decomposition, std::size_t part, const Flow& flow, const PartLayout& layout,
                    const StencilProgram& program, Device device, bool waves) {
  const Planner planner(decomposition, part, flow, layout, program, device, waves);
  PartPlans plans;
  for (const Cycle& cycle : flow.cycles) {
    plans.amid.push_back(planner.plan(cycle, false));
    plans.last.push_back(planner.plan(cycle, true));
  }
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
    throw UsageError(fmt::format(
        "phase {} of stencil {} cannot be restricted: it writes a field that it does not declare as read, so the cells "
        "it leaves unchanged would not keep correct values; add the field to the phase's reads",
        phase, program.name));
  }
  for (std::size_t b = 0; b < boxes.size(); ++b) {
    if (boxes[b].empty() || !Box::whole(extent).contains(boxes[b])) {
      throw UsageError(
          fmt::format("phase {} cannot be restricted to {}: a box must not be empty and must lie in the domain of {}",
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
