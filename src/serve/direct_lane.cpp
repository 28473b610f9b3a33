#include "headrace/serve/detail/direct_lane.hpp"

#include <algorithm>

#include "serve/engine_state.hpp"

namespace headrace::serve::detail {

DirectLane::DirectLane(const Memory& memory, std::uint32_t slots, std::uint32_t query_bytes, std::uint32_t answer_bytes,
                       std::uint32_t sample_every, WorkerCounters* stages)
    : memory_(memory),
      mask_(slots - 1),
      query_bytes_(query_bytes),
      answer_bytes_(answer_bytes),
      unit_count_(memory.done == nullptr && answer_bytes <= kSealedBytesMax ? sealed_units(answer_bytes) : 0),
      sample_every_(sample_every),
      notes_(slots),
      opened_(std::max<std::size_t>(answer_bytes, std::size_t{unit_count_} * SealedUnit::kDataBytes)),
      stages_(stages) {}

void DirectLane::write_lone(const std::byte* query) noexcept {
  SealedUnit unit{};
  unit.sequence = static_cast<std::uint32_t>(next_ + 1);
  SealedUnit* to = memory_.lone;
  const std::size_t bytes = sealed_units(query_bytes_) * sizeof(SealedUnit);
  prefetch_to_write(reinterpret_cast<const std::byte*>(to), bytes, bytes);  // the device has just read these lines
  for (std::size_t at = 0; at < query_bytes_; at += SealedUnit::kDataBytes) {
    std::memcpy(unit.data, query + at, std::min<std::size_t>(SealedUnit::kDataBytes, query_bytes_ - at));
    CpuGroup::store_unit(*to++, unit);  // pairs with LoneQuery::read
  }
}

void DirectLane::close(Error error) noexcept {
  closed_native_.store(error.native, std::memory_order_relaxed);
  closed_.store(static_cast<std::uint32_t>(error.code) + 1, std::memory_order_release);
}

bool DirectLane::kept() noexcept {
  late_.catch_up(*this, taken_, next_);
  count_taken();
  return late_.keeps();
}

std::uint64_t DirectLane::first_unanswered(std::uint64_t from) const noexcept {
  const std::uint64_t end = submitted();
  // Earlier queries were answered, and their slots may already hold later ones.
  std::uint64_t position = std::max(from, counters_.freed.load(std::memory_order_acquire));
  while (position < end && answered(position)) ++position;
  return position;
}

bool DirectLane::all_answered() const noexcept {
  if (closed_.load(std::memory_order_acquire) != 0) return true;
  const std::uint64_t end = submitted();
  return first_unanswered(0) >= end;
}

Status DirectLane::settle_unusual(const Note& note, bool has_answer) noexcept {
  if (!has_answer) {
    add(counters_.failed, 1);
    return open_status();
  }
  if (operator_failed()) {
    add(counters_.failed, 1);
    return Errc::device_fault;
  }
  if (note.mark == mark_of(taken_, false)) {
    add(counters_.cancelled, 1);
    return Errc::cancelled;
  }
  if (SteadyClock::now() > note.deadline) {
    add(counters_.expired, 1);
    return Errc::deadline_exceeded;
  }
  return {};
}

void DirectLane::take_sample(const Note& note) noexcept {
  if (stages_ == nullptr || memory_.stamps == nullptr) return;
  const DispatchStamps& stamps = memory_.stamps[taken_ & mask_];
  StageSample sample;
  sample.submitted = note.submitted;
  sample.whole = SteadyClock::now() - note.submitted;
  sample.copy_in = Duration{static_cast<std::int64_t>(stamps.staged - stamps.taken)};
  sample.kernel = Duration{static_cast<std::int64_t>(stamps.computed - stamps.staged)};
  sample.queue = Duration{static_cast<std::int64_t>(stamps.taken - stamps.seen)};
  // Host and device have separate clocks, so the remaining time is that of the transfers to the device and back.
  sample.host = std::max(Duration::zero(), sample.whole - sample.queue - sample.copy_in - sample.kernel);
  record_sample(*stages_, sample);
}

}  // namespace headrace::serve::detail
