#include "serve/resident.hpp"

#include <algorithm>
#include <utility>

#include "headrace/base/detail/threads.hpp"
#include "serve/engine_state.hpp"

namespace headrace::serve::detail {

Watchdog::Watchdog(EngineState& engine, std::unique_ptr<Resident> resident)
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
  constexpr Duration kLeast = ResidentKernel::kLeaveWithin;
  static_cast<void>(kernel().leave(failed ? kLeast : std::max(kLeast, engine_.plan.hang_after), failed));
  return kernel().left();
}

}  // namespace headrace::serve::detail
