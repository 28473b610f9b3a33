#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "headrace/base/detail/bytes.hpp"
#include "headrace/base/detail/clock.hpp"
#include "headrace/base/detail/line_copy.hpp"
#include "headrace/base/result.hpp"
#include "headrace/serve/detail/dispatch.hpp"
#include "headrace/serve/detail/late_queries.hpp"

namespace headrace::serve::detail {

struct WorkerCounters;

/// A client's lane to a resident pool. No other host thread takes part: the client writes where the device reads, and
/// reads where the device writes. The members have the contracts of Client.
class DirectLane {
 public:
  /// The slots of this lane in memory that device and client share; see DispatchView.
  struct Memory {
    std::byte* queries = nullptr;
    const std::byte* answers = nullptr;
    const std::uint32_t* done = nullptr;  ///< Null if answers are sealed, or without a pool (`answers_itself`).
    const DispatchStamps* stamps = nullptr;
    std::uint32_t* tail = nullptr;
    SealedUnit* lone = nullptr;  ///< See DispatchView::lone.
    std::uint32_t query_stride = 0;
    std::uint32_t answer_stride = 0;
    const std::atomic<std::uint32_t>* failed = nullptr;  ///< See LoadedState.
    bool answers_itself = false;                         ///< For Schedule::none: every query comes back at once.
  };

  DirectLane(const Memory& memory, std::uint32_t slots, std::uint32_t query_bytes, std::uint32_t answer_bytes,
             std::uint32_t sample_every, WorkerCounters* stages);

  // --- the client
  /// Why no query may be submitted any more, or ok.
  [[nodiscard]] Status open_status() const noexcept {
    const std::uint32_t closed = closed_.load(std::memory_order_acquire);
    if (closed == 0) return operator_failed() ? Status(Errc::device_fault) : Status();
    return Error{static_cast<Errc>(closed - 1), closed_native_.load(std::memory_order_relaxed)};
  }
  /// Whether `most` slots are taken, which may be fewer than there are.
  [[nodiscard]] bool full(std::uint32_t most) noexcept {
    return next_ - taken_ >= most || (late_.keeps() && kept_full(most));
  }
  [[nodiscard]] std::uint64_t next() const noexcept { return next_; }
  [[nodiscard]] std::uint64_t taken() const noexcept { return taken_; }
  void refuse() noexcept { add(counters_.refused, 1); }

  /// Puts a query of the operator's size into the next slot, which must be free, and tells the device.
  void submit(const std::byte* query, std::uint64_t tag, Time deadline) noexcept {
    const std::uint64_t slot = next_ & mask_;
    if (memory_.lone != nullptr && next_ == taken_ && !late_.keeps()) write_lone(query);
    copy_lines(slot_at(next_), query, query_bytes_);
    prefetch_to_write(slot_at(next_ + kWriteAhead), query_bytes_, kWriteAheadBytes);
    Note& note = notes_[slot];
    note.tag = tag;
    note.deadline = deadline;
    late_.watch(deadline);
    if (sampled(next_)) note.submitted = SteadyClock::now();
    ++next_;
    counters_.submitted.store(next_, std::memory_order_relaxed);
    // Pairs with Dispatcher: the query above is visible before the tail announces it.
    std::atomic_ref(*memory_.tail).store(static_cast<std::uint32_t>(next_), std::memory_order_release);
  }

  /// Whether the query at `position` has come back: with an answer, late, or because the lane was closed.
  [[nodiscard]] bool back(std::uint64_t position) const noexcept { return settled(position) || given_up(position); }

  // The interface that LateQueries needs.
  [[nodiscard]] bool settled(std::uint64_t position) const noexcept {
    return answered(position) || closed_.load(std::memory_order_acquire) != 0;
  }
  [[nodiscard]] Time deadline(std::uint64_t position) const noexcept { return notes_[position & mask_].deadline; }
  [[nodiscard]] bool given_up(std::uint64_t position) const noexcept {
    return notes_[position & mask_].mark == mark_of(position, true);
  }
  void give_up(std::uint64_t position) noexcept {
    notes_[position & mask_].mark = mark_of(position, true);
    add(counters_.expired, 1);
  }

  /// Calls `done(position, tag, status, answer)` for at most `most` queries that have come back, like Client::poll().
  /// Returns their number.
  template <class Done>
  std::size_t poll(Done done, std::size_t most) {
    std::size_t count = 0;
    do {
      for (; count < most && taken_ != next_; ++count) {
        prefetch_answer(taken_ + kPrefetchAhead);
        const std::byte* const answer = open(taken_);
        if (answer == nullptr && closed_.load(std::memory_order_acquire) == 0) break;
        const Note& note = notes_[taken_ & mask_];
        const Status status = settle(note, answer != nullptr);
        done(taken_, note.tag, status, std::span(answer != nullptr ? answer : opened_.data(), answer_bytes_));
        ++taken_;
        if (late_.keeps()) [[unlikely]]
          late_.catch_up(*this, taken_, next_);
      }
      if (count == most || !late_.due()) break;
      count += late_.give_up(*this, taken_, next_, most - count, [&](std::uint64_t position) {
        done(position, notes_[position & mask_].tag, Status(Errc::deadline_exceeded), std::span<const std::byte>());
      });
    } while (taken_ != next_ && settled(taken_));  // its answer arrived in time after all
    if (count != 0) count_taken();
    return count;
  }

  void cancel(std::uint64_t position) noexcept {
    Note& note = notes_[position & mask_];
    if (answered(position) || given_up(position)) return;
    note.mark = mark_of(position, false);
    note.deadline = std::min(note.deadline, kUnusual);
  }
  [[nodiscard]] const LateQueries& late() const noexcept { return late_; }
  /// Frees the slots of given-up queries on which work has ended.
  void free_slots() noexcept {
    if (late_.keeps()) static_cast<void>(kept());
  }
  /// Whether every query has come back and no work on any continues.
  [[nodiscard]] bool all_free() noexcept { return next_ == taken_ && !(late_.keeps() && kept()); }

  // --- the engine
  /// Makes every query in flight come back with `error`. After it, no query may be submitted.
  void close(Error error) noexcept;
  [[nodiscard]] bool all_answered() const noexcept;
  /// The first query from `from` on that the device has not answered; submitted() if it has answered all.
  [[nodiscard]] std::uint64_t first_unanswered(std::uint64_t from) const noexcept;
  /// Calls `waits(position)` for each query that the device has not answered after ending all its work. Returns the
  /// tail at which they end, modulo 2^32. The client may continue to submit; its new queries lie behind that tail.
  template <class Waits>
  [[nodiscard]] std::uint32_t for_each_unanswered(Waits waits) const {
    const std::uint64_t counted = submitted();
    const std::uint32_t tail = acquire(*memory_.tail);  // pairs with submit(): all queries before it are written
    const auto ahead = static_cast<std::int32_t>(tail - static_cast<std::uint32_t>(counted));
    const std::uint64_t end = counted + static_cast<std::uint64_t>(std::int64_t{ahead});
    for (std::uint64_t position = counters_.freed.load(std::memory_order_acquire); position < end; ++position) {
      if (!answered(position)) waits(position);
    }
    return tail;
  }
  [[nodiscard]] std::uint64_t submitted() const noexcept { return counters_.submitted.load(std::memory_order_acquire); }
  /// Counters that only the client writes.
  struct Counters {
    std::atomic<std::uint64_t> submitted{0};
    std::atomic<std::uint64_t> taken{0};  ///< Queries that have come back.
    std::atomic<std::uint64_t> freed{0};  ///< All queries before it have come back, and work on them has ended.
    std::atomic<std::uint64_t> refused{0};
    std::atomic<std::uint64_t> failed{0};
    std::atomic<std::uint64_t> cancelled{0};
    std::atomic<std::uint64_t> expired{0};
  };
  [[nodiscard]] const Counters& counters() const noexcept { return counters_; }

 private:
  /// The client's record of one of its queries.
  struct Note {
    std::uint64_t tag = 0;
    Time deadline = Time::max();
    Time submitted{};        ///< Only of sampled queries.
    std::uint64_t mark = 0;  ///< mark_of() the query that was cancelled or given up.
  };
  [[nodiscard]] static constexpr std::uint64_t mark_of(std::uint64_t position, bool given_up) noexcept {
    return 2 * (position + 1) + (given_up ? 1 : 0);
  }
  static constexpr Time kUnusual = Time::max() - Duration{1};  ///< No deadline, but settle() calls settle_unusual().

  static void add(std::atomic<std::uint64_t>& counter, std::uint64_t by) noexcept {
    counter.store(counter.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
  }
  [[nodiscard]] bool sampled(std::uint64_t position) const noexcept {
    return sample_every_ != 0 && (position & (sample_every_ - 1)) == 0;
  }

  void count_taken() noexcept {
    counters_.taken.store(taken_ + late_.ahead(), std::memory_order_relaxed);
    counters_.freed.store(late_.freed(taken_), std::memory_order_release);  // pairs with first_unanswered()
  }
  /// Frees the slots of given-up queries whose work has ended, and returns whether others are still taken.
  [[nodiscard]] bool kept() noexcept;
  /// The same, and returns whether in addition `most` slots are taken.
  [[nodiscard]] bool kept_full(std::uint32_t most) noexcept { return kept() && next_ - late_.freed(taken_) >= most; }

  /// Writes the query that is about to be submitted as sealed units with the sequence of its tail.
  void write_lone(const std::byte* query) noexcept;

  [[nodiscard]] static std::uint32_t acquire(const std::uint32_t& word) noexcept {
    return std::atomic_ref(const_cast<std::uint32_t&>(word)).load(std::memory_order_acquire);
  }
  [[nodiscard]] const SealedUnit* units(std::uint64_t position) const noexcept {
    return reinterpret_cast<const SealedUnit*>(memory_.answers + (position & mask_) * memory_.answer_stride);
  }

  [[nodiscard]] std::byte* slot_at(std::uint64_t position) const noexcept {
    return memory_.queries + (position & mask_) * memory_.query_stride;
  }

  /// The device has read a slot since the client last wrote it, so the core takes some 100 ns to own its lines again.
  /// The client therefore prefetches the slot after the next.
  static constexpr std::uint64_t kWriteAhead = 2;
  static constexpr std::size_t kWriteAheadBytes = 1024;

  /// The device writes answers, so each one is a cache miss: the client prefetches several.
  static constexpr std::uint64_t kPrefetchAhead = 4;
  void prefetch_answer(std::uint64_t position) const noexcept {
    const std::byte* const answer = memory_.answers + (position & mask_) * memory_.answer_stride;
    __builtin_prefetch(answer);
    __builtin_prefetch(answer + 64);
  }

  /// Whether the device has answered: every unit of the slot, or its done word, has the position's sequence.
  [[nodiscard]] bool answered(std::uint64_t position) const noexcept {
    if (memory_.answers_itself) return true;
    const auto sequence = static_cast<std::uint32_t>(position + 1);
    if (memory_.done != nullptr) return acquire(memory_.done[position & mask_]) == sequence;
    const SealedUnit* const unit = units(position);
    for (std::uint32_t i = 0; i < unit_count_; ++i) {
      if (acquire(unit[i].sequence) != sequence) return false;
    }
    return true;
  }

  /// The answer at `position`, unpacked from its units; null if it has not arrived.
  [[nodiscard]] const std::byte* open(std::uint64_t position) noexcept {
    if (!answered(position)) return nullptr;
    if (unit_count_ == 0) return memory_.answers + (position & mask_) * memory_.answer_stride;
    const SealedUnit* const unit = units(position);
    for (std::uint32_t i = 0; i < unit_count_; ++i) {
      std::memcpy(opened_.data() + i * SealedUnit::kDataBytes, unit[i].data, SealedUnit::kDataBytes);
    }
    return opened_.data();
  }

  /// Returns the status with which a query comes back, and counts it.
  [[nodiscard]] Status settle(const Note& note, bool has_answer) noexcept {
    if (!has_answer || note.deadline != Time::max() || operator_failed()) return settle_unusual(note, has_answer);
    if (sampled(taken_)) take_sample(note);
    return {};
  }
  [[nodiscard]] Status settle_unusual(const Note& note, bool has_answer) noexcept;
  [[nodiscard]] bool operator_failed() const noexcept {
    return memory_.failed != nullptr && memory_.failed->load(std::memory_order_acquire) != 0;
  }
  void take_sample(const Note& note) noexcept;

  Memory memory_;
  std::uint64_t mask_;
  std::uint32_t query_bytes_;
  std::uint32_t answer_bytes_;
  std::uint32_t unit_count_;  ///< 0 if answers are not sealed.
  std::uint32_t sample_every_;
  std::uint64_t next_ = 0;
  std::uint64_t taken_ = 0;
  LateQueries late_;
  std::vector<Note> notes_;
  std::vector<std::byte> opened_;                             ///< The last unpacked answer, in whole units.
  alignas(kNoSharing) std::atomic<std::uint32_t> closed_{0};  ///< The engine writes it once: 1 + Errc.
  std::atomic<int> closed_native_{0};
  alignas(kNoSharing) Counters counters_;
  WorkerCounters* stages_;  ///< Null for none.
};

}  // namespace headrace::serve::detail
