#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "grid/meeting.hpp"
#include "grid/part.hpp"
#include "headrace/base/clock.hpp"
#include "headrace/device/buffer.hpp"
#include "headrace/grid/decomposition.hpp"
#include "headrace/grid/resident_kernel.hpp"
#include "headrace/grid/simulation.hpp"

namespace headrace::grid {

/// Steps that are to be done, and those before them.
struct ResidentSteps {
  std::uint64_t count = 0;
  std::uint64_t redundant = 1;
  std::uint64_t steps_done = 0;
  std::uint64_t cycles_done = 0;
};

/// What one part's resident kernel works on besides its fields.
class ResidentPart {
 public:
  /// Throws as Buffer does, and UsageError when no block of the kernel fits the device.
  ResidentPart(Part& part, Meeting& meeting, const StencilProgram& program, std::size_t part_count,
               Duration wait_limit);

  /// After the part has got other plans.
  void take_plans();

  /// Does these steps and waits for them, unless told to stop. Errc::hung where the kernel has given up a wait, and
  /// where it neither begins nor gets on: it may then still run, now or later.
  [[nodiscard]] Status run(const ResidentSteps& steps) noexcept;
  [[nodiscard]] Part& part() const noexcept { return part_; }

 private:
  [[nodiscard]] Status wait_for_kernel() noexcept;

  Part& part_;
  Meeting& meeting_;
  const StencilProgram& program_;
  const Duration wait_limit_;
  const std::uint32_t blocks_max_;
  std::uint32_t blocks_ = 1;
  std::vector<ResidentCycle> cycles_;  ///< Of 1, 2, ... steps.
  Buffer stages_;
};

/// The resident mode of a simulation: a kernel a part for each call of step().
class ResidentGrid {
 public:
  /// Throws as ResidentPart does. Parts must have met.
  ResidentGrid(const std::vector<std::unique_ptr<Part>>& parts, Meetings& meetings, const StencilProgram& program,
               Duration wait_limit);

  void take_plans();
  /// In the thread of the part: does these steps and waits for them. Where a part fails, all others leave:
  /// Errc::cancelled. Errc::hung as ResidentPart::run() has it.
  [[nodiscard]] Status run(std::size_t part, const ResidentSteps& steps) noexcept;

 private:
  Meetings& meetings_;
  std::vector<std::unique_ptr<ResidentPart>> parts_;
  std::atomic<bool> stopped_{false};
};

/// Throws UsageError, with the mode to use, unless resident kernels can exchange what these parts must.
void require_resident(const Decomposition& decomposition, const Share& share, const Flow& flow, Push push);

}  // namespace headrace::grid
