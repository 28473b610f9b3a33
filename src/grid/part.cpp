#include "grid/part.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace headrace::grid {

namespace {

/// An enqueueing thread is at most twice this many cycles ahead of its device.
constexpr std::uint64_t kPaceCycles = 16;
/// The number of sums in a turn.
constexpr std::size_t kSums = kStepsWatched * ChangeSums::kSlots;
constexpr std::size_t kSumBytes = kSums * sizeof(ChangeSums);

[[nodiscard]] std::array<Event, 2> two_events(Device device) { return {Event(device), Event(device)}; }

}  // namespace

Part::Part(std::size_t number, Device device, const PartLayout& layout, const StencilProgram& program)
    : number_(number),
      device_(device),
      layout_(layout),
      program_(program),
      memory_(device, MemoryKind::device, layout.memory_bytes(program.field_count + program.spare_fields)),
      body_(device),
      filled_(device),
      border_(two_events(device)),
      pushed_(two_events(device)),
      pace_(two_events(device)),
      read_(two_events(device)),
      staged_(device),
      compute_stream_(device),
      border_stream_(device, {.priority = Priority::high}),
      compute_(compute_stream_) {
  table_.base = memory_.data() + layout.front_bytes + layout.origin * static_cast<std::int64_t>(layout.value_bytes);
  table_.stride_bytes = layout.stride_bytes();
  for (int field = 0; field < program.field_count + program.spare_fields; ++field) {
    table_.slots[field] = static_cast<std::uint8_t>(field);
  }
  if (!program.watched || program.sweeps.empty()) return;
  changes_ = Buffer(device, MemoryKind::device, 2 * kSumBytes);
  read_changes_ = Buffer(device, MemoryKind::pinned, 2 * kSumBytes);
}

Status Part::clear() noexcept {
  Status filled = compute_.fill(memory_.data(), 0, memory_.bytes());
  if (filled && changes_.bytes() > 0) filled = compute_.fill(changes_.data(), 0, changes_.bytes());
  return filled ? compute_.wait() : filled;
}

void Part::meet(std::vector<Neighbour> neighbours, const Share& share) {
  neighbours_ = std::move(neighbours);
  std::size_t sent = 0;
  std::size_t received = 0;
  const auto message = [&](const Link& link, const Neighbour& neighbour, int tag) {
    const std::span<std::byte> bytes = link.message();
    return RankMessage{share.rank_of(neighbour.part), tag, bytes.data(), bytes.size()};
  };
  for (const Neighbour& neighbour : neighbours_) {
    if (neighbour.to != nullptr) sent += neighbour.to->piece_count();
    if (neighbour.from != nullptr) received += neighbour.from->piece_count();
    if (neighbour.its != nullptr) continue;
    ranks_ = share.ranks();
    const std::size_t other = neighbour.part;
    if (neighbour.to != nullptr) sends_.push_back(message(*neighbour.to, neighbour, share.tag_of(number_, other)));
    if (neighbour.from != nullptr)
      receives_.push_back(message(*neighbour.from, neighbour, share.tag_of(other, number_)));
  }
  copies_.reserve(std::max(sent, received));
}

void Part::follow(PartPlans plans) {
  plans_ = std::move(plans);
  std::size_t most = 0;
  for (const auto* cycles : {&plans_.amid, &plans_.last}) {
    for (const CyclePlan& cycle : *cycles) {
      for (const Leg& leg : cycle.body) most = std::max(most, leg.copied.size());
    }
  }
  copies_.reserve(most * static_cast<std::size_t>(program_.field_count));
  make_room_for_chains();
}

void Part::make_room_for_chains() {
  end_chain();
  std::size_t most = 0;
  for (const auto* cycles : {&plans_.amid, &plans_.last}) {
    for (const CyclePlan& cycle : *cycles) {
      for (const SweepLaunch& launch : cycle.interior.sweeps) {
        most = std::max({most, launch.plain.chained, launch.watched.chained});
      }
    }
  }
  if (most * sizeof(std::uint64_t) <= done_.bytes()) return;
  done_ = Buffer(device_, MemoryKind::device, most * sizeof(std::uint64_t));
  compute_.fill(done_.data(), 0, done_.bytes()).or_throw("clearing the task counters of a grid on " + device_.name());
}

FieldTable Part::table_of(const Part& other) const noexcept {
  FieldTable table = table_;
  table.base = other.table_.base;  // neither it nor stride_bytes changes, so any thread may read them
  table.stride_bytes = other.table_.stride_bytes;
  return table;
}

void Part::record(std::size_t cycles) {
  recorder_ = cycles > 0 ? std::make_unique<Recorder>(device_, cycles) : nullptr;
}

std::vector<WorkSpan> Part::recorded() const { return recorder_ ? recorder_->spans(number_) : std::vector<WorkSpan>(); }

void Part::advance(std::uint64_t steps) noexcept {
  // Repeated swaps return to the starting order; a stencil has few of them.
  std::array<int, kFieldsMax> start{};
  std::iota(start.begin(), start.end(), 0);
  auto fields = start;
  std::uint64_t period = 0;
  do {
    for (const Swap& swap : program_.swaps) {
      std::swap(fields[static_cast<std::size_t>(swap.first)], fields[static_cast<std::size_t>(swap.second)]);
    }
    ++period;
  } while (fields != start);
  for (std::uint64_t step = 0; step < steps % period; ++step) table_ = table_after({});
}

void Part::begin_watch(std::size_t turn, std::uint64_t steps_done, int exponent) noexcept {
  watch_ = {.sums = changes_.as<ChangeSums>() + turn * kSums, .scale = std::ldexp(1.0, -exponent)};
  watched_from_ = steps_done;
}

Status Part::end_watch(std::size_t turn) noexcept {
  watch_ = {};
  std::byte* sums = changes_.data() + turn * kSumBytes;
  Status status = compute_.record(body_);
  if (status) status = border_stream_.wait_for(body_);
  if (status) status = border_stream_.copy(read_changes_.data() + turn * kSumBytes, sums, kSumBytes);
  if (status) status = border_stream_.fill(sums, 0, kSumBytes);
  return status ? border_stream_.record(read_[turn]) : status;
}

Status Part::take_changes(std::size_t turn, std::span<StepChange> to) noexcept {
  const Status waited = read_[turn].wait();
  if (!waited) return waited;
  const ChangeSums* sums = read_changes_.as<ChangeSums>() + turn * kSums;
  for (std::size_t i = 0; i < to.size() * ChangeSums::kSlots; ++i) {
    to[i / ChangeSums::kSlots].add({.largest = sums[i].largest, .squares = {sums[i].high, sums[i].low}});
  }
  return {};
}

Status Part::run_cycle(std::uint64_t cycle, const CyclePlan& plan, std::uint64_t steps_done,
                       Progress& progress) noexcept {
  if (recorder_) recorder_->next_cycle();
  Status status = compute(plan, steps_done);
  if (status && !neighbours_.empty()) status = push(cycle, progress);
  if (status && !neighbours_.empty()) status = receive(cycle, progress);
  return status ? keep_pace(cycle) : status;
}

/// The body runs on the compute stream. Then the border runs on its own stream, in parallel with the interior. A wave
/// takes the place of all three.
Status Part::compute(const CyclePlan& plan, std::uint64_t steps_done) noexcept {
  const bool waves = !plan.wave.empty() && watch_.sums == nullptr;
  Status status = mark(compute_, Recorder::begin);
  if (status && waves) status = plan.wave.launch(compute_, stencil_.data(), table_, steps_done);
  if (status && !waves) status = compute_body(plan, steps_done);
  if (status) status = mark(compute_, Recorder::body_end);
  // A wave has no leg, and leaves fields where its steps swap them to.
  Leg steps;
  steps.steps = plan.steps();
  const Leg& last = waves ? steps : plan.body.back();
  const std::uint64_t last_step = steps_done + steps.steps - 1;
  if (status && !neighbours_.empty()) {
    status = compute_.record(body_);
    if (status) status = border_stream_.wait_for(body_);
    if (status) status = mark(border_stream_, Recorder::border_begin);
    if (status && !waves) status = launch_all(border_stream_, last, plan.border, last_step);
  }
  if (status && !waves) status = launch_all(compute_, last, plan.interior, last_step);
  if (status) status = mark(compute_, Recorder::interior_end);
  table_ = table_after(last);
  return status;
}

/// The legs up to the last, of which the border and the interior are left.
Status Part::compute_body(const CyclePlan& plan, std::uint64_t step) noexcept {
  const Leg& last = plan.body.back();
  Status status;
  for (const Leg& leg : plan.body) {
    if (!leg.patches.empty()) status = patch(leg, step);
    step += leg.steps;
    if (status) status = launch_all(compute_, leg, leg.launches, step - 1);
    if (!status) return status;
    if (&leg != &last) table_ = table_after(leg);
  }
  return status;
}

Status Part::copy_gathered() noexcept {
  const Status copied = copy_boxes(border_stream_, copies_, layout_.value_bytes);
  copies_.clear();
  return copied;
}

/// A neighbour's ghosts are free once its border is done, because nothing else in its cycle reads them.
Status Part::push(std::uint64_t cycle, Progress& progress) noexcept {
  for (const Neighbour& neighbour : neighbours_) {
    if (neighbour.to != nullptr) neighbour.to->append_packs(table_, copies_);
  }
  Status status = copy_gathered();
  if (status) status = mark(border_stream_, Recorder::border_end);
  if (status) status = border_stream_.record(border_[cycle % 2]);
  if (!status) return status;
  progress.tell(number_, Progress::Mark::border, cycle);
  if (ranks_ != nullptr) status = send_to_ranks();
  if (!status) return status;
  for (const Neighbour& neighbour : neighbours_) {
    if (neighbour.its == nullptr) continue;
    if (!progress.await(neighbour.part, Progress::Mark::border, cycle)) return Errc::cancelled;
    status = border_stream_.wait_for(neighbour.its->border_[cycle % 2]);
    if (!status) return status;
    if (neighbour.to != nullptr) neighbour.to->append_stores(table_, table_of(*neighbour.its), copies_);
  }
  const bool pushes = std::ranges::any_of(neighbours_, [](const Neighbour& other) { return other.its != nullptr; });
  if (pushes) status = mark(border_stream_, Recorder::push_begin);
  if (status) status = copy_gathered();
  for (const Neighbour& neighbour : neighbours_) {
    if (!status) return status;
    if (neighbour.its == nullptr) continue;
    if (neighbour.to != nullptr) status = neighbour.to->send(border_stream_, table_, table_of(*neighbour.its));
  }
  if (status && pushes) status = mark(border_stream_, Recorder::push_end);
  if (status) status = border_stream_.record(pushed_[cycle % 2]);
  if (status) progress.tell(number_, Progress::Mark::pushed, cycle);
  return status;
}

/// The next cycle on the compute stream waits for the ghosts, and for this part's own pushes, which read what the cycle
/// will overwrite.
Status Part::receive(std::uint64_t cycle, Progress& progress) noexcept {
  Status status;
  for (const Neighbour& neighbour : neighbours_) {
    if (neighbour.its == nullptr) continue;
    if (!progress.await(neighbour.part, Progress::Mark::pushed, cycle)) return Errc::cancelled;
    status = border_stream_.wait_for(neighbour.its->pushed_[cycle % 2]);
    if (!status) return status;
  }
  if (ranks_ != nullptr) status = exchange_with_ranks();
  if (status) status = mark(border_stream_, Recorder::receive_begin);
  for (const Neighbour& neighbour : neighbours_) {
    if (neighbour.from == nullptr) continue;
    if (status) status = neighbour.from->fetch(border_stream_, table_);
    neighbour.from->append_unpacks(table_, copies_);
  }
  if (!status) return status;
  status = copy_gathered();
  if (status) status = mark(border_stream_, Recorder::receive_end);
  if (status) status = border_stream_.record(filled_);
  return status ? compute_.wait_for(filled_) : status;
}

/// Copies the border into the message buffers as soon as it has been packed.
Status Part::send_to_ranks() noexcept {
  for (const Neighbour& neighbour : neighbours_) {
    if (neighbour.its != nullptr || neighbour.to == nullptr) continue;
    const Status sent = neighbour.to->send(border_stream_, table_, table_);
    if (!sent) return sent;
  }
  const Status marked = mark(border_stream_, Recorder::messages_begin);
  return marked ? border_stream_.record(staged_) : marked;
}

/// This thread waits for the messages while the device computes the interior. Staging follows the previous cycle's
/// fetch, so by then the message buffers of both directions are free.
Status Part::exchange_with_ranks() noexcept {
  Status status = staged_.wait();
  if (status) status = ranks_->exchange(sends_, receives_);
  return status ? mark(border_stream_, Recorder::messages_end) : status;
}

/// Limits the queue: waits for work enqueued many cycles ago, while the device still has as much left to do.
Status Part::keep_pace(std::uint64_t cycle) noexcept {
  if (cycle % kPaceCycles != 0) return {};
  const std::uint64_t turn = cycle / kPaceCycles;
  const Status recorded = compute_.record(pace_[turn % 2]);
  return recorded ? pace_[(turn + 1) % 2].wait() : recorded;
}

Status Part::wait() noexcept {
  end_chain();
  const Status computed = compute_.wait();
  const Status pushed = border_stream_.wait();
  return computed ? pushed : computed;
}

}  // namespace headrace::grid
