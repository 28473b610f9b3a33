#include "grid/slabs/visit.hpp"

#include <algorithm>
#include <numeric>
#include <span>
#include <utility>

#include "grid/flow.hpp"
#include "grid/lags.hpp"
#include "grid/legs.hpp"
#include "grid/patches.hpp"

namespace headrace::grid {

namespace {

[[nodiscard]] FieldSet slots_of(FieldSet its_fields, const Slots& slots) {
  FieldSet found;
  for (std::size_t field = 0; field < slots.size(); ++field) {
    if (its_fields.contains(static_cast<int>(field))) found = found | fields(slots[field]);
  }
  return found;
}

void swap_slots(Slots& slots, const Swap& swap) {
  std::swap(slots[static_cast<std::size_t>(swap.first)], slots[static_cast<std::size_t>(swap.second)]);
}

/// Lists the operations of legs, in the order in which a Part enqueues them.
class Lister {
 public:
  Lister(const StencilProgram& program, const Extent& extent, Visit& visit)
      : program_(program), whole_(Box::whole(extent)), visit_(visit) {
    std::iota(slots_.begin(), slots_.end(), std::uint8_t{0});
  }

  void add_leg(std::size_t swept) {
    const std::size_t steps = std::max<std::size_t>(swept, 1);
    const SweepProgram* const sweep =
        swept > 0 ? &*std::ranges::find(program_.sweeps, static_cast<int>(swept), &SweepProgram::steps) : nullptr;
    Slots after = slots_;
    for (std::size_t step = 0; step < steps; ++step) {
      for (const Swap& swap : program_.swaps) swap_slots(after, swap);
    }
    Slots within = slots_;
    if (sweep != nullptr) {
      for (const Swap& redirect : sweep->redirects) swap_slots(after, redirect);
      within = after;  // the slots that the phases of its last step see, before its swaps
      std::for_each(program_.swaps.rbegin(), program_.swaps.rend(),
                    [&](const Swap& swap) { swap_slots(within, swap); });
    }
    const bool patched = sweep != nullptr && !others_follow(program_, *sweep);
    const std::vector<Box> patches = patched ? *sweep->patches : std::vector<Box>();
    if (patched) add_patches(*sweep, patches, within);
    if (sweep != nullptr) add_pass(*sweep, outside(std::span(&whole_, 1), patches), after);
    for (std::size_t phase = 0; phase < program_.phases.size() && !patched; ++phase) {
      if (sweep == nullptr || !is_swept(program_, phase)) add_phase(phase, {whole_}, within, done_ + steps - 1);
    }
    slots_ = after;
    done_ += steps;
  }

  [[nodiscard]] const Slots& slots() const noexcept { return slots_; }

 private:
  void add_patches(const SweepProgram& sweep, std::span<const Box> patches, const Slots& within) {
    const Flow flow = flow_of(program_, sweep.steps);
    const auto grown = [&](const Layers& by) {
      std::vector<Box> boxes;
      for (const Box& patch : patches) boxes.push_back(patch.grow(by).intersect(whole_));
      return disjoint(boxes);
    };
    Operation copy{.kind = Operation::Kind::copy, .boxes = grown(flow.ghosts), .from = slots_, .to = within};
    for (const Swap& redirect : sweep.redirects) {
      copy.copied.push_back(redirect.first);
      copy.reads = copy.reads | slots_of(fields(redirect.first), slots_);
      copy.writes = copy.writes | slots_of(fields(redirect.first), within);
    }
    visit_.operations.push_back(std::move(copy));
    const auto& beyond = flow.cycles.back().beyond;
    for (std::size_t step = 0; step < beyond.size(); ++step) {
      for (std::size_t phase = 0; phase < program_.phases.size(); ++phase) {
        add_phase(phase, grown(beyond[step][phase]), within, done_ + step);
      }
    }
  }

  void add_pass(const SweepProgram& sweep, std::vector<Box> boxes, const Slots& after) {
    if (boxes.empty()) return;
    visit_.operations.push_back({.kind = Operation::Kind::pass,
                                 .sweep = &sweep,
                                 .boxes = std::move(boxes),
                                 .from = slots_,
                                 .to = after,
                                 .step = done_,
                                 .reads = {},
                                 .neighbours = slots_of(sweep.loaded, slots_),
                                 .writes = slots_of(sweep.stored, after),
                                 .reach = sweep.halo});
  }

  void add_phase(std::size_t phase, const std::vector<Box>& boxes, const Slots& slots, std::uint64_t step) {
    const auto& only = program_.only[phase];
    std::vector<Box> kept;
    for (const Box& box : boxes) {
      if (!only) kept.push_back(box);
      if (!only) continue;
      for (const Box& allowed : *only) kept.push_back(box.intersect(allowed));
    }
    std::erase_if(kept, [](const Box& box) { return box.empty(); });
    if (kept.empty()) return;
    const Phase& its = program_.phases[phase];
    visit_.operations.push_back({.kind = Operation::Kind::phase,
                                 .phase = phase,
                                 .boxes = std::move(kept),
                                 .from = slots,
                                 .to = slots,
                                 .step = step,
                                 .reads = slots_of(its.reads, slots),
                                 .neighbours = slots_of(its.neighbours, slots),
                                 .writes = slots_of(its.writes, slots),
                                 .reach = its.reach});
  }

  const StencilProgram& program_;
  Box whole_;
  Visit& visit_;
  Slots slots_{};
  std::uint64_t done_ = 0;
};

void set_lags(Visit& visit, std::size_t axis) {
  Lags lags(axis);
  for (Operation& operation : visit.operations) {
    operation.lag = lags.next(operation.reads, operation.neighbours, operation.writes, operation.reach);
    visit.end_lag = operation.lag;
    visit.kept_rows = std::max(visit.kept_rows, operation.lag + operation.reach.low[axis]);
  }
}

/// Finds which earlier values the visit needs, and what it changes.
void set_flow(Visit& visit, const StencilProgram& program, const Extent& extent) {
  const FieldSet all = fields_from(0, program.field_count);
  FieldSet defined;
  FieldSet written;
  for (const Operation& operation : visit.operations) {
    std::int64_t cells = 0;
    for (const Box& box : operation.boxes) cells += box.cells();
    const bool everywhere = cells == extent.cells();
    FieldSet needed = operation.reads | operation.neighbours;
    visit.touched = visit.touched | needed | operation.writes;
    if (!everywhere) needed = needed | operation.writes;  // the other cells keep their values
    needed.mask &= ~defined.mask;
    visit.loaded = visit.loaded | (needed & all);
    if (everywhere) defined = defined | operation.writes;
    written = written | operation.writes;
  }
  for (int field = 0; field < program.field_count; ++field) {
    const int slot = visit.after[static_cast<std::size_t>(field)];
    if (slot != field || written.contains(slot)) visit.changed = visit.changed | fields(field);
    // A field that has only changed places is needed in its old place.
    if (slot != field && slot < program.field_count && !defined.contains(slot))
      visit.loaded = visit.loaded | fields(slot);
  }
}

/// Whether a field is ever found in another field's place.
[[nodiscard]] bool changes_places(const StencilProgram& program, int field) {
  const auto names = [field](const Swap& swap) { return swap.first == field || swap.second == field; };
  return std::ranges::any_of(program.swaps, names) || std::ranges::any_of(program.sweeps, [&](const auto& sweep) {
           return std::ranges::any_of(sweep.redirects, names);
         });
}

}  // namespace

Visit visit_of(const StencilProgram& program, const Extent& extent, std::size_t steps, bool last_of_call,
               std::size_t axis) {
  Visit visit;
  visit.steps = steps;
  Lister lister(program, extent, visit);
  for (const std::size_t swept : legs_of(program, steps, last_of_call)) lister.add_leg(swept);
  visit.after = lister.slots();
  set_lags(visit, axis);
  set_flow(visit, program, extent);
  return visit;
}

std::vector<Box> cells_in_use(const StencilProgram& program, const Extent& extent, int field) {
  const Box whole = Box::whole(extent);
  std::vector<Box> boxes;
  for (std::size_t p = 0; p < program.phases.size(); ++p) {
    const Phase& phase = program.phases[p];
    if (!(phase.reads | phase.neighbours | phase.writes).contains(field)) continue;
    if (!program.only[p] || changes_places(program, field)) return {whole};
    for (const Box& box : *program.only[p]) {
      boxes.push_back(phase.neighbours.contains(field) ? box.grow(phase.reach).intersect(whole) : box);
    }
  }
  // Joining many boxes costs more than it saves.
  constexpr std::size_t kBoxesMax = 16;
  if (boxes.size() > kBoxesMax) return {whole};
  std::vector<Box> found = disjoint(boxes);
  std::int64_t cells = 0;
  for (const Box& box : found) cells += box.cells();
  return cells > extent.cells() / 2 || found.size() > kBoxesMax ? std::vector<Box>{whole} : found;
}

bool stays(const StencilProgram& program, int field) {
  const auto uses = [field](const Phase& phase) {
    return phase.writes.contains(field) || phase.neighbours.contains(field);
  };
  return !changes_places(program, field) && std::ranges::none_of(program.phases, uses);
}

}  // namespace headrace::grid
