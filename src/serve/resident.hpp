#pragma once

#include <atomic>
#include <future>
#include <memory>
#include <mutex>
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
  /// Ends the kernel and starts it with another share of the device; see Engine::set_share(). Called by the watchdog.
  /// Where it throws UsageError, the kernel has its old share; where anything else, it is of no use any more.
  virtual void set_share(double share);
  /// The kernel has left for good: gives back what it held of the device, though clients may keep this object.
  virtual void ended() noexcept {}
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
  /// Resident::set_share(), by the thread that watches; returns when it is done. Any thread. Throws what that throws,
  /// and Exception with the engine's fault, or Errc::stopped, where nobody watches any more.
  void set_share(double share);
  [[nodiscard]] ResidentKernel& kernel() noexcept { return resident_->kernel(); }

  static constexpr Duration kLookEvery = std::chrono::milliseconds(5);

 private:
  /// A share that is asked for.
  struct Wanted {
    double share;
    std::promise<void> given;
  };
  void watch() noexcept;
  /// Gives the share that is asked for, if any; whether the kernel can still be used.
  [[nodiscard]] bool give_share() noexcept;

  EngineState& engine_;
  std::unique_ptr<Resident> resident_;
  std::atomic<bool> ending_{false};
  std::atomic<Wanted*> wanted_{nullptr};
  std::mutex wanting_;  ///< One share is asked for at a time.
  Parking parking_;
  std::jthread thread_;
};

}  // namespace headrace::serve::detail
