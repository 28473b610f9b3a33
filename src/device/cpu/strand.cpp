#include "device/cpu/strand.hpp"

#include <algorithm>

#include "base/spin.hpp"
#include "device/cpu/workers.hpp"

namespace headrace::detail {

void StrandList::push(Ref<Strand> strand) noexcept {
  Strand* added = strand.release();
  added->next_ = nullptr;
  (first_ == nullptr ? first_ : last_->next_) = added;
  last_ = added;
}

void StrandList::push_by_use(Ref<Strand> strand) noexcept {
  if (first_ == nullptr || last_->used_ <= strand->used_) return push(std::move(strand));
  Strand** place = &first_;
  while ((*place)->used_ <= strand->used_) place = &(*place)->next_;  // ends at the last one
  Strand* added = strand.release();
  added->next_ = *place;
  *place = added;
}

Ref<Strand> StrandList::pop() noexcept {
  Strand* first = first_;
  if (first != nullptr) first_ = first->next_;
  return Ref<Strand>::adopt(first);
}

Strand::Strand(Workers& workers, StreamOptions options) noexcept
    : high_priority_(options.priority == Priority::high), run_in_waiter_(options.run_in_waiter), workers_(&workers) {}

Status Strand::enqueue_copies(std::span<const Copy> copies) noexcept {
  if (inherited()) return kInherited;
  constexpr std::size_t kCopiesMax = (TaskQueue::kTaskBytesMax - sizeof(CopyManyTask)) / sizeof(Copy);
  Workers* runner = nullptr;
  {
    const std::lock_guard lock(mutex_);
    const std::uint64_t tasks = (copies.size() + kCopiesMax - 1) / kCopiesMax;
    if (!queue_.reserve(tasks)) return Errc::out_of_memory;
    while (!copies.empty()) {
      const auto part = copies.first(std::min(copies.size(), kCopiesMax));
      auto* task = queue_.push<CopyManyTask>(TaskKind::copy_many, sizeof(CopyManyTask) + part.size_bytes());
      task->count = part.size();
      std::copy(part.begin(), part.end(), reinterpret_cast<Copy*>(task + 1));
      copies = copies.subspan(part.size());
    }
    runner = publish(tasks);
  }
  if (runner != nullptr) schedule(*runner);
  return {};
}

Workers* Strand::publish(std::uint64_t tasks) noexcept {
  // Pairs with drain() and enqueued(): a thread that sees the count sees the tasks.
  enqueued_.store(enqueued_.load(std::memory_order_relaxed) + tasks, std::memory_order_release);
  if (state_ != State::idle || run_in_waiter_) return nullptr;
  state_ = State::queued;
  return workers_;
}

void Strand::schedule(Workers& runner) noexcept { runner.push(Ref<Strand>(this)); }

Workers* Strand::settle() noexcept {
  const std::uint64_t done = done_.load(std::memory_order_relaxed);
  const std::uint64_t enqueued = enqueued_.load(std::memory_order_relaxed);
  if (done < (run_in_waiter_ ? demanded_ : enqueued)) {
    state_ = State::queued;
    return workers_;
  }
  state_ = State::idle;
  if (done == enqueued) queue_.rewind();
  if (run_in_waiter_ && blocked_count_ > 0) changed_.notify_all();  // one of the waiting threads can own the strand now
  return nullptr;
}

void Strand::settle_and_schedule() noexcept {
  Workers* runner = nullptr;
  {
    const std::lock_guard lock(mutex_);
    runner = settle();
  }
  if (runner != nullptr) schedule(*runner);
}

void Strand::finish_front() noexcept {
  queue_.pop();
  const std::uint64_t done = done_.load(std::memory_order_relaxed) + 1;
  done_.store(done, std::memory_order_seq_cst);  // pairs with reached(), block() and park()
  if (done >= wake_at_.load(std::memory_order_seq_cst)) wake(done);
}

void Strand::wake(std::uint64_t done) noexcept {
  StrandList released;
  {
    const std::lock_guard lock(mutex_);
    StrandList kept;
    std::uint64_t next = kNever;
    while (Ref<Strand> waiter = parked_.pop()) {
      const bool release = waiter->parked_until_ <= done;
      if (!release) next = std::min(next, waiter->parked_until_);
      (release ? released : kept).push(std::move(waiter));
    }
    parked_ = kept;
    wake_at_.store(next, std::memory_order_seq_cst);
    if (blocked_count_ > 0) changed_.notify_all();  // threads that wait for a later point check again
  }
  while (const Ref<Strand> waiter = released.pop()) waiter->settle_and_schedule();
}

bool Strand::park(Ref<Strand> waiter, std::uint64_t sequence) noexcept {
  const std::lock_guard lock(mutex_);
  const std::uint64_t before = wake_at_.load(std::memory_order_relaxed);
  wake_at_.store(std::min(before, sequence), std::memory_order_seq_cst);
  // An owner that finishes after this load sees wake_at_, and then takes the lock to wake the list.
  if (done_.load(std::memory_order_seq_cst) >= sequence) return false;
  waiter->parked_until_ = sequence;
  parked_.push(std::move(waiter));
  return true;
}

void Strand::demand(std::uint64_t sequence, Workers& workers) noexcept {
  if (!run_in_waiter_) return;
  Workers* runner = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (sequence <= demanded_) return;
    demanded_ = sequence;
    workers_ = &workers;  // they outlive their strand that waits for `sequence`
    if (state_ == State::idle) runner = settle();
  }
  if (runner != nullptr) schedule(*runner);
}

void Strand::run_in_worker(Workers& workers) noexcept {
  std::uint64_t target = kNever;
  {
    const std::lock_guard lock(mutex_);
    state_ = State::owned;
    if (run_in_waiter_) target = demanded_;
  }
  const Time began = SteadyClock::now();
  const Stop stop = drain(target, &workers);
  if (stop == Stop::resident) return;  // resident_done() continues
  used_ += SteadyClock::now() - began;
  if (stop != Stop::blocked) return settle_and_schedule();

  const auto& wait = static_cast<const WaitTask&>(queue_.front());
  const StrandPoint point{Ref<Strand>(wait.strand), wait.sequence};
  {
    const std::lock_guard lock(mutex_);
    state_ = State::parked;
  }
  if (!point.strand->park(Ref<Strand>(this), point.sequence)) return settle_and_schedule();
  point.strand->demand(point.sequence, workers);
}

void Strand::resident_done() noexcept {
  finish_front();
  settle_and_schedule();
}

}  // namespace headrace::detail
