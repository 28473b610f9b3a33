#include "operators/spmv/crew.hpp"

#include "headrace/base/detail/threads.hpp"
#include "headrace/device/detail/host_thread.hpp"
#include "operators/spmv/kernels.hpp"

namespace headrace::operators {

namespace {

constexpr int kPolls = 2000;

}  // namespace

template <class Value>
Crew<Value>::Crew(const std::vector<CrewPart<Value>>& parts) {
  for (const CrewPart<Value>& part : parts) members_.push_back(std::make_unique<Member>(part));
  if (members_.size() > 1) start_threads();
}

template <class Value>
Crew<Value>::~Crew() {
  static_cast<void>(wait());  // the caller has asked for failures, or could have
  stop_threads();
}

template <class Value>
void Crew<Value>::start_threads() {
  try {
    start_each("host threads of a sparse matrix, one per device,", members_.size(), [&](std::size_t number) {
      Member& member = *members_[number];
      member.thread = start_thread_near(member.part.device, number, [this, &member] { work(member); });
    });
  } catch (...) {
    stop_threads();
    throw;
  }
}

template <class Value>
void Crew<Value>::stop_threads() noexcept {
  stopping_.store(true, std::memory_order_seq_cst);
  changed_.notify_all();
  for (const auto& member : members_) {
    if (member->thread.joinable()) member->thread.join();
  }
}

template <class Value>
template <class Ready>
void Crew<Value>::await(const Ready& ready) noexcept {
  for (int poll = 0; poll < kPolls; ++poll) {
    if (ready()) return;
    if (poll % 64 == 63) std::this_thread::yield();
  }
  changed_.wait_until(Time::max(), ready);
}

template <class Value>
bool Crew<Value>::all_enqueued(std::uint64_t number) const noexcept {
  for (const auto& member : members_) {
    if (member->enqueued.load(std::memory_order_seq_cst) < number) return false;
  }
  return true;
}

template <class Value>
void Crew<Value>::fail(Status status) noexcept {
  failure_.set(status.error());
}

template <class Value>
Status Crew<Value>::failure() const noexcept {
  const std::optional<Error> first = failure_.get();
  return first ? Status(*first) : Status();
}

template <class Value>
void Crew<Value>::work(Member& member) noexcept {
  for (std::uint64_t number = 1;; ++number) {
    await(
        [&] { return posted_.load(std::memory_order_seq_cst) >= number || stopping_.load(std::memory_order_seq_cst); });
    if (posted_.load(std::memory_order_acquire) < number) return;
    run(member, number);
  }
}

template <class Value>
void Crew<Value>::run(Member& member, std::uint64_t number) noexcept {
  // After a failure, steps are skipped, because their input was never written.
  if (failure().ok()) {
    const Status ran = run_step(member, number);
    if (!ran) fail(ran);
  }
  member.enqueued.store(number, std::memory_order_seq_cst);
  changed_.notify_all();
}

template <class Value>
Status Crew<Value>::run_step(Member& member, std::uint64_t number) noexcept {
  for (const auto& other : members_) {
    if (other.get() == &member || number == 1) continue;
    await([&] { return other->enqueued.load(std::memory_order_seq_cst) >= number - 1; });
    const Status held = member.stream.wait_for(other->done[(number - 1) % 2]);
    if (!held) return held;
  }
  const Step step = steps_[number % kQueue];
  const CrewPart<Value>& part = member.part;
  const Value* x = step.x + part.first_column;
  if (part.copied_count > 0) {
    const Status copied = launch_gather(member.stream, part.x_copy, x, part.copied_count);
    if (!copied) return copied;
    x = part.x_copy;
  }
  const Status launched = launch_spmv(member.stream, part.work, x, step.y + part.first_row);
  if (!launched) return launched;
  return members_.size() > 1 ? member.stream.record(member.done[number % 2]) : Status();
}

template <class Value>
Status Crew<Value>::enqueue(const Value* x, Value* y) noexcept {
  const Status before = failure();
  if (!before) return before;
  const std::uint64_t number = posted_.load(std::memory_order_relaxed) + 1;
  if (number > kQueue) await([&] { return all_enqueued(number - kQueue); });
  steps_[number % kQueue] = {x, y};
  posted_.store(number, std::memory_order_seq_cst);
  if (members_.size() == 1) {
    run(*members_.front(), number);
  } else {
    changed_.notify_all();
  }
  return failure();
}

template <class Value>
Status Crew<Value>::wait() noexcept {
  const std::uint64_t number = posted_.load(std::memory_order_relaxed);
  await([&] { return all_enqueued(number); });
  for (const auto& member : members_) {
    const Status waited = member->stream.wait();
    if (!waited) fail(waited);
  }
  return failure();
}

template class Crew<float>;
template class Crew<double>;

}  // namespace headrace::operators
