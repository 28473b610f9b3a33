#include "serve/resident.hpp"

#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

#include "headrace/base/detail/process.hpp"
#include "headrace/base/detail/threads.hpp"
#include "serve/engine_state.hpp"

namespace headrace::serve::detail {

namespace {

struct Abandoned {
  std::shared_ptr<const void> keep;
  Resident* resident = nullptr;
};

struct AbandonedList {
  std::mutex mutex;
  std::vector<Abandoned> entries;
};

AbandonedList& abandoned() {
  // Never destroyed: a kernel that hangs uses what is kept here until the process is gone.
  static AbandonedList& list = make_process_wide<AbandonedList>();
  return list;
}

}  // namespace

Watchdog::Watchdog(EngineState& engine, std::shared_ptr<Resident> resident)
    : engine_(engine), resident_(std::move(resident)) {
  start_each("threads that watch an engine", 1, [this](std::size_t) { thread_ = std::jthread([this] { watch(); }); });
}

Watchdog::~Watchdog() {
  ending_.store(true, std::memory_order_seq_cst);
  parking_.notify_all();
}

void Watchdog::watch() noexcept {
  const auto ending = [this] { return ending_.load(std::memory_order_seq_cst); };
  while (!ending()) {
    const Time now = SteadyClock::now();
    if (const Status status = resident_->look(now); !status) {
      engine_.fail(status.error());
      return;
    }
    parking_.wait_until(now + kLookEvery, ending);
  }
}

bool Watchdog::stop() noexcept {
  ending_.store(true, std::memory_order_seq_cst);
  parking_.notify_all();
  if (thread_.joinable()) thread_.join();
  const bool failed = engine_.fault().has_value();
  resident_->ask_to_leave(failed);
  // A kernel that is well leaves at once, but a machine with too much to do may not run it so soon.
  return wait_gone(*resident_, failed ? kLeaveWithin : std::max(kLeaveWithin, engine_.plan.hang_after));
}

bool wait_gone(Resident& resident, Duration limit) noexcept {
  constexpr Duration kBetween = std::chrono::microseconds(50);
  const Time until = SteadyClock::now() + limit;
  while (!resident.gone()) {
    if (SteadyClock::now() >= until) return false;
    std::this_thread::sleep_for(kBetween);
  }
  return true;
}

void abandon(std::shared_ptr<const void> keep, Resident& resident) noexcept {
  AbandonedList& list = abandoned();
  const std::lock_guard lock(list.mutex);
  list.entries.push_back({std::move(keep), &resident});  // out of memory here ends the process: nothing else is safe
}

std::size_t reap_abandoned() noexcept {
  AbandonedList& list = abandoned();
  while (true) {
    Abandoned gone;  // freed without the lock: an engine's end may take time
    const std::lock_guard lock(list.mutex);
    const auto found = std::ranges::find_if(list.entries, [](const Abandoned& one) { return one.resident->gone(); });
    if (found == list.entries.end()) return list.entries.size();
    gone = std::exchange(*found, std::move(list.entries.back()));
    list.entries.pop_back();
  }
}

}  // namespace headrace::serve::detail
