#pragma once

#include <atomic>
#include <memory>
#include <thread>

#include "headrace/base/detail/clock.hpp"
#include "headrace/base/detail/parking.hpp"
#include "headrace/base/result.hpp"
#include "headrace/device/detail/resident_kernel.hpp"

/// The safety of engines whose kernels stay on the device.
namespace headrace::serve::detail {

class EngineState;

/// The resident kernel of an engine, as its watchdog sees it.
class Resident {
 public:
  virtual ~Resident() = default;

  /// Called by the watchdog every few milliseconds: why the kernel is of no use any more (Errc::device_fault: it ended
  /// or faulted; Errc::hung: it does not come back from a query), or ok.
  [[nodiscard]] virtual Status look(Time now) noexcept = 0;
  [[nodiscard]] virtual ResidentKernel& kernel() noexcept = 0;
};

/// Looks at an engine's resident kernel from a thread of its own, and sees it off.
class Watchdog {
 public:
  /// What Resident::look() answers goes to EngineState::fail().
  Watchdog(EngineState& engine, std::unique_ptr<Resident> resident);
  ~Watchdog();

  /// Tells the kernel to leave and waits for that; whether it has left. It waits at most kLeaveWithin once the engine
  /// has failed, else until a query would count as hung. The engine must have no thread any more that uses it.
  [[nodiscard]] bool stop() noexcept;
  [[nodiscard]] ResidentKernel& kernel() noexcept { return resident_->kernel(); }

  static constexpr Duration kLookEvery = std::chrono::milliseconds(5);

 private:
  void watch() noexcept;

  EngineState& engine_;
  std::unique_ptr<Resident> resident_;
  std::atomic<bool> ending_{false};
  Parking parking_;
  std::jthread thread_;
};

}  // namespace headrace::serve::detail
