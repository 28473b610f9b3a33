#include "grid/slabs/slab_grid.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "grid/slabs/budget.hpp"
#include "headrace/base/detail/bytes.hpp"
#include "headrace/base/error.hpp"

/// Cuts a domain into slabs and allocates their memory. run.cpp does the steps.
namespace headrace::grid {

namespace {

/// Default steps of a visit: enough that a link of 40 GB/s each way keeps up with 70% (plane) and 50% (space) of what
/// device memory of 4.3 TB/s allows one step at a time, with coefficients in every cell.
constexpr std::uint64_t kStepsInPlane = 48;
constexpr std::uint64_t kStepsInSpace = 24;
/// A visit does half as many steps if slabs would otherwise be thinner than 1 / kThinnest of the rows they lag behind.
constexpr std::int64_t kThinnest = 4;
/// With fewer slabs, the first copy in and the last copy out, which overlap with no computation, take more of a call.
constexpr std::int64_t kSlabsMin = 8;

[[nodiscard]] std::int64_t over(std::int64_t value, std::int64_t unit) noexcept { return (value + unit - 1) / unit; }

[[nodiscard]] int slot_count(const StencilProgram& program) noexcept {
  return program.field_count + program.spare_fields;
}

}  // namespace

SlabGrid::SlabGrid(Device device, const Extent& extent, const StencilProgram& program, const SimulationOptions& options,
                   std::size_t budget_bytes)
    : device_(device),
      extent_(extent),
      axis_(slab_axis(extent)),
      program_(program),
      options_(options),
      like_(layout_of_slab(program, extent)),
      host_(device, extent, axis_, like_, program.field_count),
      stencil_(program.stencils.front()),
      arrived_(device),
      taken_(device),
      packed_(device),
      unloaded_(device),
      in_(device),
      compute_(device),
      out_(device) {
  const WindowShape shape = choose_shape(budget_bytes);
  // Fields with a single value may later need room for copies in, so the whole budget is used unless the domain needs
  // less.
  const auto all = pieces_of(fields_from(0, program.field_count));
  const WindowShape most = SlabWindow::shape_for(like_, axis_, slot_count(program), shape.rows, row_count(), all, all);
  device_bytes_ = std::min(budget_bytes, most.total_bytes);
  window_.emplace(device, like_, axis_, slot_count(program), device_bytes_);
  facts_ = {.rows = shape.slab_rows, .count = over(row_count(), shape.slab_rows), .steps = steps_};
  note_facts();
}

void SlabGrid::replan() {
  visits_.clear();
  shaped_ = false;
}

void SlabGrid::set(int field, const std::byte* values, bool one_for_all) {
  host_.set(field, values, one_for_all, in_use(field));
  shaped_ = false;
}

const Visit& SlabGrid::visit(std::uint64_t steps, bool last) {
  const auto [found, is_new] = visits_.try_emplace({steps, last});
  if (is_new) found->second = visit_of(program_, extent_, static_cast<std::size_t>(steps), last, axis_);
  return found->second;
}

/// The pieces of these fields that are, or will be, in host memory.
std::vector<HostPiece> SlabGrid::pieces_of(FieldSet some) const {
  std::vector<HostPiece> found;
  for (int field = 0; field < program_.field_count; ++field) {
    if (!some.contains(field)) continue;
    std::vector<HostPiece> pieces = host_.pieces(field);
    if (pieces.empty()) pieces = host_.pieces_of(in_use(field));
    found.insert(found.end(), pieces.begin(), pieces.end());
  }
  return found;
}

std::optional<WindowShape> SlabGrid::largest_shape(std::uint64_t steps, std::size_t bytes) {
  FieldSet in;
  FieldSet out;
  std::int64_t kept = 0;
  const auto note = [&](const Visit& its) {
    in = in | its.loaded;
    out = out | its.changed;
    kept = std::max(kept, its.kept_rows);
  };
  note(visit(steps, false));
  for (std::uint64_t some = 1; some <= steps; ++some) note(visit(some, true));
  FieldSet moved;
  for (int field = 0; field < program_.field_count; ++field) {
    if (in.contains(field) && !constant(field)) moved = moved | fields(field);
  }
  const std::vector<HostPiece> on_way_in = pieces_of(moved);
  const std::vector<HostPiece> on_way_out = pieces_of(out);
  const auto shape = [&](std::int64_t rows) {
    return SlabWindow::shape_for(like_, axis_, slot_count(program_), kept, rows, on_way_in, on_way_out);
  };
  if (shape(1).total_bytes > bytes) return std::nullopt;
  std::int64_t most = 1;
  for (std::int64_t above = row_count() + 1; above - most > 1;) {
    const std::int64_t rows = most + (above - most) / 2;
    (shape(rows).total_bytes <= bytes ? most : above) = rows;
  }
  const std::int64_t enough = std::max(over(row_count(), kSlabsMin), kept);
  const std::int64_t slabs = over(row_count(), std::min(most, enough));
  return shape(over(row_count(), slabs));
}

WindowShape SlabGrid::choose_shape(std::size_t bytes) {
  const auto given = static_cast<std::uint64_t>(options_.visit_steps);
  std::optional<WindowShape> found;
  for (std::uint64_t steps = given > 0 ? given : axis_ == 1 ? kStepsInPlane : kStepsInSpace; steps > 0; steps /= 2) {
    const auto shape = largest_shape(steps, bytes);
    if (shape) {
      found = shape;
      steps_ = steps;
    }
    const bool thin = !shape || kThinnest * shape->slab_rows < shape->rows - shape->slab_rows;
    if (given > 0 || !thin) break;
  }
  if (found) return *found;
  const char* const advice = given > 1 ? ", or do fewer steps per visit" : "";
  throw UsageError(fmt::format(
      "{} of device memory cannot hold a slab of a domain of {}, not even a single {}; give it more memory{}",
      format_bytes(bytes), to_string(extent_), axis_ == 1 ? "row" : "plane", advice));
}

void SlabGrid::provide_memory(const Visit& its) {
  for (int field = 0; field < program_.field_count; ++field) {
    if ((its.loaded | its.changed).contains(field) && !constant(field)) host_.provide(field, in_use(field));
  }
}

void SlabGrid::prepare(std::uint64_t count) {
  if (count == 0) return;
  const std::optional<WindowShape> shape = shaped_ ? std::nullopt : std::optional(choose_shape(device_bytes_));
  const Visit& last = visit((count - 1) % steps_ + 1, true);
  const Visit* const amid = count > steps_ ? &visit(steps_, false) : nullptr;
  if (amid != nullptr) provide_memory(*amid);
  provide_memory(last);
  if (shape) {
    window_->take(*shape);
    cleared_ = false;
    shaped_ = true;
  }
  kept_pieces_.clear();
  for (int field = 0; field < program_.field_count; ++field) kept_pieces_.push_back(host_.pieces(field));
  plans_.clear();
  if (amid != nullptr) plans_.push_back(make_plan(*amid, amid->changed & (amid->loaded | last.loaded)));
  plans_.push_back(make_plan(last, last.changed));
  for (auto& events : stored_) {
    for (const Plan& plan : plans_) {
      while (events.size() < static_cast<std::size_t>(over(row_count(), plan.slab_rows))) events.emplace_back(device_);
    }
  }
  for (auto& rows : stored_to_) rows.reserve(stored_[0].size());
  note_facts();
}

SlabGrid::Plan SlabGrid::make_plan(const Visit& its, FieldSet out) const {
  const WindowShape& shape = window_->shape();
  Plan plan{.visit = &its, .moving = its.touched, .slab_rows = std::min(shape.slab_rows, shape.rows - its.kept_rows)};
  const auto add = [&](std::vector<Transfer>& to, int field, std::size_t slot) {
    for (const HostPiece& piece : host_.pieces(field)) to.push_back({.slot = slot, .piece = &piece});
  };
  for (int field = 0; field < program_.field_count; ++field) {
    if (constant(field)) {
      plan.moving.mask &= ~fields(field).mask;
      continue;
    }
    const auto number = static_cast<std::size_t>(field);
    if (its.loaded.contains(field)) add(plan.in, field, number);
    if (out.contains(field)) add(plan.out, field, its.after[number]);
  }
  SlabWindow::place(plan.in, plan.slab_rows, axis_);
  SlabWindow::place(plan.out, plan.slab_rows, axis_);
  return plan;
}

void SlabGrid::note_facts() {
  const auto bytes_of = [&](const std::vector<Transfer>& transfers) {
    std::uint64_t bytes = 0;
    for (const Transfer& its : transfers)
      bytes += its.piece->slice_bytes * static_cast<std::uint64_t>(its.piece->slices(axis_));
    return bytes;
  };
  facts_.steps = steps_;
  facts_.device_bytes = device_bytes_;
  facts_.host_bytes = host_.bytes();
  if (plans_.empty()) return;
  const Plan& plan = plans_.front();
  facts_.rows = plan.slab_rows;
  facts_.count = over(row_count(), plan.slab_rows);
  facts_.bytes_in = bytes_of(plan.in);
  facts_.bytes_out = bytes_of(plan.out);
}

}  // namespace headrace::grid
