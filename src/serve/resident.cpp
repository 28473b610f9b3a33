#include "serve/resident.hpp"

#include <algorithm>
#include <exception>
#include <utility>

#include "headrace/base/detail/threads.hpp"
#include "headrace/base/error.hpp"
#include "serve/engine_state.hpp"

namespace headrace::serve::detail {

Watchdog::Watchdog(EngineState& engine, std::unique_ptr<Resident> resident)
    : engine_(engine), resident_(std::move(resident)) {
  start_each("watchdog threads of an engine", 1, [this](std::size_t) { thread_ = std::jthread([this] { watch(); }); });
}

Watchdog::~Watchdog() {
  ending_.store(true, std::memory_order_seq_cst);
  parking_.notify_all();
}

void Resident::set_share(double /*share*/) {
  throw UsageError("this schedule has no device share that could change", Errc::not_supported);
}

void Watchdog::set_share(double share) {
  const std::lock_guard lock(wanting_);
  Wanted wanted{share, {}};
  std::future<void> given = wanted.given.get_future();
  wanted_.store(&wanted, std::memory_order_seq_cst);
  parking_.notify_all();
  while (given.wait_for(kLookEvery) != std::future_status::ready) {
    if (!engine_.fault() && !ending_.load(std::memory_order_seq_cst)) continue;
    Wanted* asked = &wanted;
    if (wanted_.compare_exchange_strong(asked, nullptr)) {  // the watchdog has not taken it up and will not
      throw_error("changing the share of an engine", engine_.fault().value_or(Error{Errc::stopped, 0}));
    }
  }
  given.get();
}

bool Watchdog::give_share() noexcept {
  Wanted* const wanted = wanted_.exchange(nullptr, std::memory_order_seq_cst);
  if (wanted == nullptr) return true;
  bool usable = false;
  try {
    resident_->set_share(wanted->share);
    usable = true;
    wanted->given.set_value();
  } catch (const UsageError&) {
    usable = true;
    wanted->given.set_exception(std::current_exception());
  } catch (const Exception& error) {
    engine_.fail({error.code(), error.native()});
    wanted->given.set_exception(std::current_exception());
  } catch (...) {
    engine_.fail({Errc::out_of_memory, 0});
    wanted->given.set_exception(std::current_exception());
  }
  return usable;
}

void Watchdog::watch() noexcept {
  const auto ending = [this] { return ending_.load(std::memory_order_seq_cst); };
  const auto awake = [&] { return ending() || wanted_.load(std::memory_order_seq_cst) != nullptr; };
  while (!ending()) {
    if (!give_share()) return;
    const Time now = SteadyClock::now();
    if (const Status status = resident_->look(now); !status) {
      engine_.fail(status.error());
      return;
    }
    parking_.wait_until(now + kLookEvery, awake);
  }
}

bool Watchdog::stop() noexcept {
  ending_.store(true, std::memory_order_seq_cst);
  parking_.notify_all();
  if (thread_.joinable()) thread_.join();
  const bool failed = engine_.fault().has_value();
  constexpr Duration kLeast = ResidentKernel::kLeaveWithin;
  static_cast<void>(kernel().leave(failed ? kLeast : std::max(kLeast, engine_.plan.hang_after), failed));
  if (!kernel().left()) return false;
  resident_->ended();
  return true;
}

}  // namespace headrace::serve::detail
