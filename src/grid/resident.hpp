#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "grid/part.hpp"
#include "headrace/base/detail/clock.hpp"
#include "headrace/device/buffer.hpp"
#include "headrace/device/detail/peer.hpp"
#include "headrace/device/detail/resident_kernel.hpp"
#include "headrace/grid/detail/decomposition.hpp"
#include "headrace/grid/detail/steps_kernel.hpp"
#include "headrace/grid/simulation.hpp"

namespace headrace::grid {

/// The steps to do, and those done before.
struct ResidentSteps {
  std::uint64_t count = 0;
  std::uint64_t redundant = 1;
  std::uint64_t steps_done = 0;
  std::uint64_t cycles_done = 0;
};

/// The state of one part's resident kernel besides the fields.
class ResidentPart {
 public:
  /// Throws as Buffer does, and UsageError if no block of the kernel fits on the device.
  ResidentPart(Part& part, const StencilProgram& program, std::size_t part_count, Duration wait_limit);

  /// Where the kernel of the part `other` publishes its progress.
  [[nodiscard]] ResidentMarks* marks_of(std::size_t other) const noexcept;
  /// Called once all parts exist. Gives this part access to its neighbours' memory.
  void meet(const std::vector<std::unique_ptr<ResidentPart>>& all);
  /// Called after the part's plans have changed.
  void take_plans();

  /// Does these steps and waits for them, unless stopped. Returns Errc::hung if the kernel gave up a wait, does not
  /// start or makes no progress. In the last two cases it may still be running, or start later.
  [[nodiscard]] Status run(const ResidentSteps& steps) noexcept;
  /// Makes the kernel exit at its current or next wait. Permanent; callable from any thread.
  void stop() const noexcept;
  [[nodiscard]] ResidentKernel& kernel() noexcept { return kernel_; }
  [[nodiscard]] Part& part() const noexcept { return part_; }
  /// The part that the kernel was waiting for when it left a wait early, possibly its own; nothing if it left none.
  [[nodiscard]] std::optional<std::size_t> waits_for() const noexcept;
  /// Whether the kernel of the last run() has started.
  [[nodiscard]] bool has_begun() const noexcept;

 private:
  template <class Item>
  [[nodiscard]] Buffer upload(const std::vector<Item>& items) const;

  Part& part_;
  const StencilProgram& program_;
  const Duration wait_limit_;
  const std::uint32_t blocks_max_;
  std::uint32_t blocks_ = 1;
  std::vector<ResidentCycle> cycles_;  ///< The cycles of 1, 2, ... steps.
  std::vector<PeerAccess> access_;
  Buffer words_;  ///< Holds ResidentWords.
  Buffer counters_;
  Buffer marks_;  ///< The marks of each neighbour.
  Buffer stages_;
  Buffer pieces_;
  Buffer neighbours_;
  std::uint32_t piece_count_ = 0;
  ResidentKernel kernel_;
};

/// The resident mode of a simulation: one kernel for each part and call of step().
class ResidentGrid {
 public:
  /// Throws as ResidentPart does. The parts must have met.
  ResidentGrid(const std::vector<std::unique_ptr<Part>>& parts, const StencilProgram& program, Duration wait_limit);

  void take_plans();
  /// Stops all kernels. Returns whether all have exited within their limits.
  [[nodiscard]] bool leave() noexcept;
  /// Kernels that have not exited keep `owner`, which owns this object, alive until they have.
  void abandon(const std::shared_ptr<const void>& owner) noexcept;
  /// Does these steps and waits for them, in the part's thread. If a part fails, the others stop with Errc::cancelled.
  /// Returns Errc::hung as ResidentPart::run() does.
  [[nodiscard]] Status run(std::size_t part, const ResidentSteps& steps) noexcept;
  /// Describes which part did not answer, after run() has returned for all parts and with Errc::hung for `part`.
  [[nodiscard]] std::string why_hung(std::size_t part) const;

 private:
  const Duration wait_limit_;
  std::vector<std::unique_ptr<ResidentPart>> parts_;
  std::atomic<bool> stopped_{false};
};

/// Throws UsageError, naming the mode to use instead, if resident kernels cannot do the exchanges of these parts.
void require_resident(const Decomposition& decomposition, const Share& share, const Flow& flow, Push push);

}  // namespace headrace::grid
