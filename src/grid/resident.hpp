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
  ResidentPart(Part& part, const StencilProgram& program, std::size_t part_count, Duration wait_limit);

  /// Where the kernel of the part `other` tells how far it is.
  [[nodiscard]] ResidentMarks* marks_of(std::size_t other) const noexcept;
  /// Once all parts are there. Lets this part into the memory of its neighbours.
  void meet(const std::vector<std::unique_ptr<ResidentPart>>& all);
  /// After the part has got other plans.
  void take_plans();

  /// Does these steps and waits for them, unless told to stop. Errc::hung where the kernel has given up a wait, and
  /// where it neither begins nor gets on: it may then still run, now or later.
  [[nodiscard]] Status run(const ResidentSteps& steps) noexcept;
  /// The kernel leaves where it waits, now or whenever it comes to wait. From any thread, and for good.
  void stop() const noexcept;
  [[nodiscard]] ResidentKernel& kernel() noexcept { return kernel_; }
  [[nodiscard]] Part& part() const noexcept { return part_; }
  /// The part that its kernel was waiting for when it left, which may be itself; none where it did not leave so.
  [[nodiscard]] std::optional<std::size_t> waits_for() const noexcept;
  /// Whether the kernel of the last run() has begun.
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
  Buffer words_;  ///< ResidentWords.
  Buffer counters_;
  Buffer marks_;  ///< The marks of each neighbour.
  Buffer stages_;
  Buffer pieces_;
  Buffer neighbours_;
  std::uint32_t piece_count_ = 0;
  ResidentKernel kernel_;
};

/// The resident mode of a simulation: a kernel a part for each call of step().
class ResidentGrid {
 public:
  /// Throws as ResidentPart does. Parts must have met.
  ResidentGrid(const std::vector<std::unique_ptr<Part>>& parts, const StencilProgram& program, Duration wait_limit);

  void take_plans();
  /// Tells all kernels to leave; whether they have, within their limits.
  [[nodiscard]] bool leave() noexcept;
  /// Those that have not left keep `owner`, which owns this, until they have.
  void abandon(const std::shared_ptr<const void>& owner) noexcept;
  /// In the thread of the part: does these steps and waits for them. Where a part fails, all others leave:
  /// Errc::cancelled. Errc::hung as ResidentPart::run() has it.
  [[nodiscard]] Status run(std::size_t part, const ResidentSteps& steps) noexcept;
  /// Once run() has returned for all parts, and with Errc::hung for `part`: which part did not answer, for messages.
  [[nodiscard]] std::string why_hung(std::size_t part) const;

 private:
  const Duration wait_limit_;
  std::vector<std::unique_ptr<ResidentPart>> parts_;
  std::atomic<bool> stopped_{false};
};

/// Throws UsageError, with the mode to use, unless resident kernels can exchange what these parts must.
void require_resident(const Decomposition& decomposition, const Share& share, const Flow& flow, Push push);

}  // namespace headrace::grid
