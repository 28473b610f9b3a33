#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>

#include "headrace/device/group.hpp"
#include "headrace/grid/detail/cell.hpp"
#include "headrace/grid/detail/sweep.hpp"
#include "headrace/grid/detail/sweep_region.hpp"

namespace headrace::grid {

/// A row of a window that is known at compile time, for CUDA: the window is then in registers. The code is compiled
/// once for each row, which would take a host compiler ten times as long, so the host uses AnyRow.
template <int Row>
struct FixedRow {
  [[nodiscard]] HEADRACE_HD static constexpr int row() noexcept { return Row; }
  template <int Rows>
  [[nodiscard]] HEADRACE_HD static constexpr FixedRow<Row + Rows> plus() noexcept {
    return {};
  }
};

/// A row of a window that is known at run time, for the CPU, whose window is in memory.
struct AnyRow {
  int number = 0;
  [[nodiscard]] HEADRACE_HD constexpr int row() const noexcept { return number; }
  template <int Rows>
  [[nodiscard]] HEADRACE_HD constexpr AnyRow plus() const noexcept {
    return {number + Rows};
  }
};

/// A ring of a few rows of all fields: the cells of one thread, and as many on each side as a phase reads. A position
/// in it is a FixedRow on CUDA and an AnyRow on the CPU.
template <class Stencil, int Steps, bool Wide>
struct SweepWindow {
  using Value = typename Stencil::Value;
  static constexpr int kLineCells = 64 / static_cast<int>(sizeof(Value));
  static constexpr int kUnit = 16 / static_cast<int>(sizeof(Value));  ///< Values loaded and stored at once.
  static constexpr int kCells = Wide ? 128 * kLineCells : kUnit;
  /// Rows that are loaded ahead of the row that phases begin with, so that on CUDA their loads overlap with
  /// computation.
  static constexpr int kAhead = Wide ? 0 : 1;
  static constexpr int kDepth = Sweep<Stencil, Steps>::depth() + kAhead;
  static constexpr int kBeside = Wide ? kLineCells : kUnit;

  alignas(64) Value at[Stencil::kFields][kDepth][kBeside + kCells + kBeside];

  [[nodiscard]] HEADRACE_HD static constexpr int ring(int row) noexcept { return (row % kDepth + kDepth) % kDepth; }
};

/// A Cell that lies in a window.
template <class Stencil, int Steps, int OpNumber, class Position, bool Wide>
class SweepCell {
 public:
  using Value = typename Stencil::Value;
  using Window = SweepWindow<Stencil, Steps, Wide>;

  HEADRACE_HD SweepCell(Window& window, const SweepRegion& region, Position position, std::int32_t place,
                        std::int32_t x, std::int32_t y, std::int32_t z, bool held) noexcept
      : window_(window),
        region_(region),
        position_(position),
        place_(Window::kBeside + place),
        x_(x),
        y_(y),
        z_(z),
        held_(held) {}

  [[nodiscard]] HEADRACE_HD Value get(int field) const noexcept {
    assert(Declared::here(field));
    return window_.at[window_of(field)][row(0)][place_];
  }
  [[nodiscard]] HEADRACE_HD Value get(int field, int dx, int dy, int dz) const noexcept {
    assert(Declared::at_neighbour(field, dx, dy, dz));
    static_cast<void>(dz);
    return window_.at[window_of(field)][row(dy)][place_ + dx];
  }
  /// Cells outside the domain stay 0.
  HEADRACE_HD void set(int field, Value value) const noexcept {
    assert(Declared::writes(field));
    window_.at[window_of(field)][row(0)][place_] = Wide || held_ ? value : Value{0};
  }

  [[nodiscard]] HEADRACE_HD std::int32_t x() const noexcept { return region_.own_low[0] + x_; }
  [[nodiscard]] HEADRACE_HD std::int32_t y() const noexcept { return region_.own_low[1] + y_; }
  [[nodiscard]] HEADRACE_HD std::int32_t z() const noexcept { return region_.own_low[2] + z_; }
  [[nodiscard]] HEADRACE_HD std::int32_t extent(int axis) const noexcept { return region_.extent[axis]; }
  [[nodiscard]] HEADRACE_HD std::uint64_t step() const noexcept {
    return region_.step + static_cast<std::uint64_t>(kOp.step);
  }

 private:
  using Plan = Sweep<Stencil, Steps>;
  static constexpr typename Plan::Op kOp = kSweepOps<Stencil, Steps>[OpNumber];
  using Declared = PhaseAccess<Stencil, kOp.phase>;

  [[nodiscard]] HEADRACE_HD static constexpr int window_of(int field) noexcept {
    constexpr typename Plan::Windows kIts = Plan::windows(kOp.step);
    return kIts[static_cast<std::size_t>(field)];
  }
  [[nodiscard]] HEADRACE_HD constexpr int row(int dy) const noexcept {
    constexpr int kLag = kOp.lag;
    return Window::ring(position_.row() - kLag + dy);
  }

  Window& window_;
  const SweepRegion& region_;
  Position position_;
  std::int32_t place_;
  std::int32_t x_;
  std::int32_t y_;
  std::int32_t z_;
  bool held_;
};

}  // namespace headrace::grid
