#pragma once

#include <cstdint>
#include <string>

#include "headrace/base/detail/clock.hpp"

namespace headrace::measure {

/// The activity of the processors that this process may use over some time, apart from this process. Shares are of the
/// total time of these processors; 0 if the system does not report it (/proc/stat, /proc/pressure/cpu).
struct MachineActivity {
  double others = 0;    ///< Other processes ran.
  double steal = 0;     ///< The hypervisor ran something else.
  double waiting = 0;   ///< Share of the time in which some task waited for a processor (its own ones as well).
  double runnable = 0;  ///< Other tasks that ran or waited for each of these processors, at the end.
  Duration over{};      ///< Length of the observation.
};

/// Why such a machine is not quiet, such as "other programs took 40% of the processors' time"; empty if it is.
[[nodiscard]] std::string why_disturbed(const MachineActivity& activity);

/// Observes what else the machine does, from one lap to the next.
class MachineWatch {
 public:
  MachineWatch() { static_cast<void>(lap()); }

  /// Activity since construction or the previous lap. The system counts in ticks of 10 ms, so a lap should last a
  /// second; for one below a tenth of a second, only `runnable` is known.
  MachineActivity lap();

 private:
  /// Accumulated times in seconds.
  struct Reading {
    double total = 0;
    double busy = 0;
    double steal = 0;
    double own = 0;
    double waiting = 0;
    double processors = 0;
    Time at{};
  };

  [[nodiscard]] static Reading read();

  Reading last_;
};

}  // namespace headrace::measure
