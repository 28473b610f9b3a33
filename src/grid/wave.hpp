#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "grid/launches.hpp"
#include "headrace/device/kernel.hpp"
#include "headrace/device/stream.hpp"
#include "headrace/grid/detail/region.hpp"
#include "headrace/grid/stencil.hpp"

namespace headrace::grid {

/// The phases of all steps of a cycle on a CPU device, which go through the rows of a part together: a few rows at a
/// time, each phase some rows behind the one before it (see Lags). Values are still in the cache when the next phase or
/// step needs them, so that a cycle goes through memory once instead of once for each phase of each step. Rows are
/// planes in three dimensions.
class Wave {
 public:
  /// A wave without phases.
  Wave() = default;
  /// @param steps  the launches of each step, in order
  Wave(const StencilProgram& program, std::span<const Launches> steps);

  [[nodiscard]] bool empty() const noexcept { return stages_.empty(); }
  /// Enqueues the cycle that follows `step` steps, with fields where `table` says. The wave and the stencil must stay
  /// as they are until it is done.
  [[nodiscard]] Status launch(StreamRef stream, std::byte* stencil, const FieldTable& table,
                              std::uint64_t step) const noexcept;

 private:
  struct Kernel;

  /// One launch of a phase.
  struct Stage {
    headrace::Kernel::CpuEntry run = nullptr;
    std::size_t step = 0;   ///< Steps of the cycle before its own.
    std::int32_t lag = 0;   ///< Rows by which it stays behind the front.
    std::int32_t low = 0;   ///< Its first row.
    std::int32_t high = 0;  ///< The row after its last.
    std::uint32_t boxes = 0;
    Region region;
  };

  void run(std::byte* stencil, FieldTable table, std::uint64_t step) const noexcept;
  void run(const Stage& stage, std::byte* stencil, FieldTable& table, std::uint64_t step,
           std::int32_t front) const noexcept;

  std::vector<Stage> stages_;
  std::vector<Swap> swaps_;
  std::size_t axis_ = 0;
  std::int32_t rows_ = 1;  ///< Rows by which the front advances.
  std::int32_t begin_ = 0;
  std::int32_t end_ = 0;  ///< Where the front is when the last phase has done its last row.
};

}  // namespace headrace::grid
