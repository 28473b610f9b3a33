#include "grid/patches.hpp"

#include <algorithm>

namespace headrace::grid {

namespace {

/// Each patch costs additional launches, and the strips between patches are short.
constexpr std::size_t kPatchesMax = 16;
/// Limit before removing overlaps, which takes quadratic time.
constexpr std::size_t kBoxesMax = 256;

void subtract(const Box& box, const Box& hole, std::vector<Box>& to) {
  const Box common = box.intersect(hole);
  if (common.empty()) return to.push_back(box);
  // Cuts along the slowest axis first, so that the largest pieces have whole rows.
  Box rest = box;
  for (std::size_t axis = 3; axis-- > 0;) {
    Box low = rest;
    low.high[axis] = common.low[axis];
    Box high = rest;
    high.low[axis] = common.high[axis];
    rest.low[axis] = common.low[axis];
    rest.high[axis] = common.high[axis];
    if (!low.empty()) to.push_back(low);
    if (!high.empty()) to.push_back(high);
  }
}

[[nodiscard]] bool has_cells(const StencilProgram& program, std::size_t phase) {
  return !program.only[phase] || !program.only[phase]->empty();
}

/// Phases around a patch write where the pass will store, so every field that they write and the pass uses must be
/// stored.
[[nodiscard]] bool can_patch(const StencilProgram& program, const SweepProgram& sweep) {
  if (!program.swaps.empty() || !program.overwritten.empty()) return false;
  FieldSet touched;
  FieldSet written;
  for (std::size_t p = 0; p < program.phases.size(); ++p) {
    const Phase& phase = program.phases[p];
    if (is_swept(program, p)) {
      touched = touched | phase.reads | phase.neighbours | phase.writes;
    } else if (has_cells(program, p)) {
      if (!program.only[p]) return false;
      written = written | phase.writes;
    }
  }
  return (written & touched).within(sweep.stored);
}

}  // namespace

std::vector<Box> outside(std::span<const Box> boxes, std::span<const Box> holes) {
  std::vector<Box> left(boxes.begin(), boxes.end());
  for (const Box& hole : holes) {
    std::vector<Box> pieces;
    for (const Box& box : left) subtract(box, hole, pieces);
    left = std::move(pieces);
  }
  return left;
}

std::vector<Box> disjoint(std::span<const Box> boxes) {
  std::vector<Box> made;
  for (const Box& box : boxes) {
    const std::vector<Box> more = outside(std::span(&box, 1), made);
    made.insert(made.end(), more.begin(), more.end());
  }
  return made;
}

bool is_swept(const StencilProgram& program, std::size_t phase) {
  return std::ranges::find(program.swept, static_cast<int>(phase)) != program.swept.end();
}

OtherPhases other_phases(const StencilProgram& program) {
  OtherPhases found;
  for (std::size_t phase = 0; phase < program.phases.size(); ++phase) {
    if (is_swept(program, phase) || !has_cells(program, phase)) continue;
    found.any = true;
    if (phase < static_cast<std::size_t>(program.swept.back())) found.after = false;
  }
  return found;
}

std::optional<std::vector<Box>> patches_of(const StencilProgram& program, const SweepProgram& sweep,
                                           const Extent& extent) {
  if (!other_phases(program).any) return std::vector<Box>();
  if (!can_patch(program, sweep)) return std::nullopt;
  std::vector<Box> boxes;
  for (std::size_t phase = 0; phase < program.phases.size(); ++phase) {
    if (is_swept(program, phase) || !has_cells(program, phase)) continue;
    for (const Box& box : *program.only[phase]) {
      // The cells that read from a box lie on the opposite side.
      boxes.push_back(box.grow({.low = sweep.halo.high, .high = sweep.halo.low}).intersect(Box::whole(extent)));
    }
  }
  if (boxes.size() > kBoxesMax) return std::nullopt;
  std::vector<Box> patches = disjoint(boxes);
  std::int64_t cells = 0;
  for (const Box& box : patches) cells += box.cells();
  if (patches.size() > kPatchesMax || cells > extent.cells() / 2) return std::nullopt;
  return patches;
}

}  // namespace headrace::grid
