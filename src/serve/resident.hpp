#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <thread>

#include "headrace/base/detail/clock.hpp"
#include "headrace/base/detail/parking.hpp"
#include "headrace/base/result.hpp"

/// The safety of engines whose kernels stay on the device.
namespace headrace::serve::detail {

class EngineState;

/// The resident kernels of one engine, as its watchdog sees them.
class Resident {
 public:
  virtual ~Resident() = default;

  /// Called by the watchdog every few milliseconds: why the kernels are of no use any more (Errc::device_fault: they
  /// ended or faulted; Errc::hung: one does not come back from a query), or ok.
  [[nodiscard]] virtual Status look(Time now) noexcept = 0;
  /// Tells the kernels to leave once they have answered what they are at; `at_once`, whatever they are at.
  virtual void ask_to_leave(bool at_once) noexcept = 0;
  /// True when none of them runs any more, so that what they use may be freed. Any thread.
  [[nodiscard]] virtual bool gone() noexcept = 0;
};

/// Looks at an engine's resident kernels from a thread of its own, and sees them off.
class Watchdog {
 public:
  /// What Resident::look() answers goes to EngineState::fail().
  Watchdog(EngineState& engine, std::shared_ptr<Resident> resident);
  ~Watchdog();

  /// Tells the kernels to leave and waits for that; whether they have gone. It waits at most kLeaveWithin once the
  /// engine has failed, else until a query would count as hung. The engine must have no thread any more that uses them.
  [[nodiscard]] bool stop() noexcept;
  [[nodiscard]] Resident& resident() noexcept { return *resident_; }

  static constexpr Duration kLookEvery = std::chrono::milliseconds(5);
  static constexpr Duration kLeaveWithin = std::chrono::milliseconds(90);

 private:
  void watch() noexcept;

  EngineState& engine_;
  std::shared_ptr<Resident> resident_;
  std::atomic<bool> ending_{false};
  Parking parking_;
  std::jthread thread_;
};

/// Whether `resident` is gone, or goes within `limit`.
[[nodiscard]] bool wait_gone(Resident& resident, Duration limit) noexcept;

/// Keeps `keep`, which must own `resident`, for as long as `resident` is not gone: what a kernel that does not end may
/// still use can be neither freed nor waited for.
void abandon(std::shared_ptr<const void> keep, Resident& resident) noexcept;
/// Lets go of what has gone since; how many are left.
std::size_t reap_abandoned() noexcept;

}  // namespace headrace::serve::detail
