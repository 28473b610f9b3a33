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

/// Supervision of engines with resident kernels.
namespace headrace::serve::detail {

class EngineState;

/// The resident kernel of an engine, as its watchdog sees it.
class Resident {
 public:
  virtual ~Resident() = default;

  /// The watchdog calls it every few milliseconds. Returns why the kernel is unusable (Errc::device_fault: it ended or
  /// faulted; Errc::hung: it does not return from a query), or ok.
  [[nodiscard]] virtual Status look(Time now) noexcept = 0;
  /// Ends the kernel and restarts it with another share of the device; see Engine::change(). Called by the watchdog.
  /// If it throws UsageError, the kernel keeps its old share; after any other exception the kernel is unusable.
  virtual void set_share(double share);
  /// Called when the kernel has left for good: releases its share of the device, because clients may keep this object.
  virtual void ended() noexcept {}
  [[nodiscard]] virtual ResidentKernel& kernel() noexcept = 0;
};

/// Supervises an engine's resident kernel from its own thread, and ends it.
class Watchdog {
 public:
  /// Passes failures from Resident::look() to EngineState::fail().
  Watchdog(EngineState& engine, std::unique_ptr<Resident> resident);
  ~Watchdog();

  /// Tells the kernel to leave, waits for that, and returns whether it has left. Waits at most kLeaveWithin once the
  /// engine has failed, else until a query would count as hung. No thread of the engine may use the kernel any more.
  [[nodiscard]] bool stop() noexcept;
  /// Calls Resident::set_share() in the watchdog thread and returns when it is done. Any thread. Throws what that
  /// throws, and Exception with the engine's fault, or Errc::stopped, if the watchdog has ended.
  void set_share(double share);
  [[nodiscard]] ResidentKernel& kernel() noexcept { return resident_->kernel(); }

  static constexpr Duration kLookEvery = std::chrono::milliseconds(5);

 private:
  /// A requested share.
  struct Wanted {
    double share;
    std::promise<void> given;
  };
  void watch() noexcept;
  /// Sets the requested share, if any, and returns whether the kernel is still usable.
  [[nodiscard]] bool give_share() noexcept;

  EngineState& engine_;
  std::unique_ptr<Resident> resident_;
  std::atomic<bool> ending_{false};
  std::atomic<Wanted*> wanted_{nullptr};
  std::mutex wanting_;  ///< Held while a share is requested, so that there is one request at a time.
  Parking parking_;
  std::jthread thread_;
};

}  // namespace headrace::serve::detail
