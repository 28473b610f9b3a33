#include <algorithm>
#include <new>

#include "grid/launches.hpp"
#include "grid/slabs/slab_grid.hpp"

/// Enqueues the visits of slabs on three streams: copies in, steps, and copies out.
namespace headrace::grid {

namespace {

/// The host enqueues at most this many slabs ahead of the last one that has returned.
constexpr std::size_t kSlabsAhead = 3;

/// The parts of these boxes that lie in these rows.
[[nodiscard]] std::vector<Box> within_rows(const std::vector<Box>& boxes, std::size_t axis, RowRange rows) {
  std::vector<Box> found;
  for (Box box : boxes) {
    box.low[axis] = std::max(box.low[axis], rows.first);
    box.high[axis] = std::min(box.high[axis], rows.end);
    if (!box.empty()) found.push_back(box);
  }
  return found;
}

}  // namespace

Status SlabGrid::clear_window() {
  const Status cleared = window_->clear(compute_);
  if (!cleared) return cleared;
  for (int field = 0; field < program_.field_count; ++field) {
    if (!constant(field)) continue;
    const Status filled = window_->fill(compute_, static_cast<std::size_t>(field), host_.value(field));
    if (!filled) return filled;
  }
  return {};
}

Status SlabGrid::run(std::uint64_t count, std::uint64_t steps_done) noexcept {
  Status status;
  try {
    status = run_visits(count, steps_done);
  } catch (const std::bad_alloc&) {
    status = Errc::out_of_memory;
  }
  for (const StreamRef stream : {StreamRef(in_), StreamRef(compute_), StreamRef(out_)}) {
    const Status waited = stream.wait();
    if (status) status = waited;
  }
  return status;
}

Status SlabGrid::run_visits(std::uint64_t count, std::uint64_t steps_done) {
  if (!cleared_) {
    const Status filled = clear_window();
    if (!filled) return filled;
    cleared_ = true;
  }
  for (std::uint64_t done = 0; done < count;) {
    const Plan& plan = count - done > steps_ ? plans_.front() : plans_.back();
    const Status status = run_visit(plan, steps_done + done);
    if (!status) return status;
    done += plan.visit->steps;
  }
  return {};
}

Status SlabGrid::run_visit(const Plan& plan, std::uint64_t steps_done) {
  const std::int64_t kept = plan.visit->kept_rows;
  turn_ = 1 - turn_;
  stored_to_[turn_].clear();
  for (std::int64_t first = 0; first < row_count(); first += plan.slab_rows) {
    const RowRange rows{.first = first, .end = std::min(first + plan.slab_rows, row_count())};
    const Slab slab{.rows = rows, .first = first == 0, .last = rows.end == row_count()};
    const std::size_t back = stored_to_[turn_].size();
    Status status = back < kSlabsAhead ? Status() : stored_[turn_][back - kSlabsAhead].wait();
    window_->move_to(first - kept);
    if (status) status = bring(plan, slab);
    if (status) status = compute(plan, slab, steps_done);
    if (status) status = take_away(plan, slab);
    if (status && !slab.last) status = window_->keep(compute_, plan.moving, kept_pieces_, kept, rows.end);
    if (!status) return status;
  }
  return {};
}

/// The buffer for copies in is free once the previous slab has been unpacked. Rows of the previous visit must be back
/// in host memory.
Status SlabGrid::bring(const Plan& plan, const Slab& slab) {
  const auto& before = stored_to_[1 - turn_];
  const auto back = std::ranges::find_if(before, [&](std::int64_t row) { return row >= slab.rows.end; });
  Status status = in_.wait_for(taken_);
  if (status && back != before.end())
    status = in_.wait_for(stored_[1 - turn_][static_cast<std::size_t>(back - before.begin())]);
  if (status) status = window_->copy_in(in_, plan.in, slab.rows);
  if (status) status = in_.record(arrived_);
  if (status) status = compute_.wait_for(arrived_);
  if (status && slab.first) status = window_->clear(compute_, plan.moving, {.first = -like_.pads.low[axis_], .end = 0});
  if (status) status = window_->unpack(compute_, plan.in, slab.rows);
  if (status) status = compute_.record(taken_);
  if (status && slab.last) {
    const std::int64_t end = row_count();
    status = window_->clear(compute_, plan.moving, {.first = end, .end = end + like_.pads.high[axis_]});
  }
  return status;
}

Status SlabGrid::compute(const Plan& plan, const Slab& slab, std::uint64_t steps_done) {
  for (const Operation& operation : plan.visit->operations) {
    const RowRange rows{.first = slab.first ? 0 : slab.rows.first - operation.lag,
                        .end = slab.last ? row_count() : slab.rows.end - operation.lag};
    const std::vector<Box> boxes = within_rows(operation.boxes, axis_, rows);
    const Status status = boxes.empty() ? Status() : launch(operation, boxes, slab.rows.end, steps_done);
    if (!status) return status;
  }
  return {};
}

Status SlabGrid::launch(const Operation& operation, const std::vector<Box>& boxes, std::int64_t end_row,
                        std::uint64_t steps_done) {
  Status status;
  if (operation.kind == Operation::Kind::copy) {
    for (const int field : operation.copied) {
      const auto number = static_cast<std::size_t>(field);
      if (status) status = window_->copy_cells(compute_, boxes, operation.from[number], operation.to[number]);
    }
    return status;
  }
  const PartLayout layout = window_->layout(end_row);
  const Launcher launcher(layout, program_, device_, extent_);
  const FieldTable table = window_->table(operation.from);
  const std::uint64_t step = steps_done + operation.step;
  Launches launches;
  if (operation.kind == Operation::Kind::phase) {
    launcher.add_phase(launches, operation.phase, boxes);
    for (const PhaseLaunch& its : launches.phases) {
      if (status) status = launch_phase(compute_, program_, stencil_.data(), its, table, step);
    }
    return status;
  }
  launcher.add_pass(launches, *operation.sweep, boxes);
  const SweepPlaces places = places_of(*operation.sweep, table, operation.to);
  for (const SweepLaunch& its : launches.sweeps) {
    if (status) status = launch_pass(compute_, operation.sweep->kernel, stencil_.data(), its.plain, places, step);
  }
  return status;
}

/// The last slab also takes away the rows that it lagged behind, which may be more than the buffer for copies out
/// holds.
Status SlabGrid::take_away(const Plan& plan, const Slab& slab) {
  const RowRange rows{.first = slab.first ? 0 : std::max<std::int64_t>(slab.rows.first - plan.visit->end_lag, 0),
                      .end = slab.last ? row_count() : slab.rows.end - plan.visit->end_lag};
  Status status;
  for (std::int64_t first = rows.first; first < rows.end && status; first += plan.slab_rows) {
    const RowRange some{.first = first, .end = std::min(first + plan.slab_rows, rows.end)};
    status = compute_.wait_for(unloaded_);
    if (status) status = window_->pack(compute_, plan.out, some);
    if (status) status = compute_.record(packed_);
    if (status) status = out_.wait_for(packed_);
    if (status) status = window_->copy_out(out_, plan.out, some);
    if (status) status = out_.record(unloaded_);
  }
  if (status) status = out_.record(stored_[turn_][stored_to_[turn_].size()]);
  stored_to_[turn_].push_back(rows.end);
  return status;
}

}  // namespace headrace::grid
