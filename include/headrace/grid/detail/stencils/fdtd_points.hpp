#pragma once

#include <cstdint>

#include "headrace/device/group.hpp"
#include "headrace/grid/detail/stencils/cpml.hpp"
#include "headrace/grid/detail/stencils/fdtd_dispersion.hpp"
#include "headrace/grid/detail/stencils/fdtd_media.hpp"

/// Sources and receivers of FDTD as the stencils see them: tables in device memory, sorted by cell, so that a phase
/// restricted to their cells finds its own in a few reads.
namespace headrace::grid {

struct FdtdSourcePoint {
  std::int64_t cell = 0;   ///< The cell of the domain, counted with x fastest.
  std::int64_t first = 0;  ///< Index of its first sample among all samples.
  std::int64_t count = 0;
  std::int32_t field = 0;
  std::int32_t magnetic = 0;  ///< 1 for a field that is updated in the first half of a step.
};

struct FdtdReceiverPoint {
  std::int64_t cell = 0;
  std::int32_t field = 0;
  std::int32_t number = 0;  ///< Index among the receivers of this part.
};

/// Adds samples[step] to a field after that field's update, until the samples end.
template <class Value>
struct FdtdSources {
  const FdtdSourcePoint* points = nullptr;
  const Value* samples = nullptr;
  std::int64_t count = 0;
};

/// Writes a field at the end of a step to traces[number * capacity + (step - first_step)].
template <class Value>
struct FdtdReceivers {
  const FdtdReceiverPoint* points = nullptr;
  Value* traces = nullptr;
  std::int32_t count = 0;
  std::int32_t capacity = 0;
  std::int64_t first_step = 0;
};

/// All data of the stencils besides the fields.
template <class Value>
struct FdtdTables {
  CpmlFactors<Value> electric[3];  ///< One for each axis.
  CpmlFactors<Value> magnetic[3];
  FdtdSources<Value> sources;
  FdtdReceivers<Value> receivers;
  /// Kernels take at most 640 bytes of arguments, so what only one stencil needs shares its place.
  union {
    /// With ez in a plane and dispersive media: the coefficients of hy over those of the field they are read from; 1 in
    /// square cells.
    Value hy_share = 1;
    FdtdMedia<FdtdElectric<Value>> electric_media;  ///< In three dimensions, and with hz in a plane.
  };
  FdtdMedia<FdtdMagnetic<Value>> magnetic_media{};  ///< As electric_media.
  FdtdDispersion<Value> dispersion;                 ///< With dispersive media only.
  /// Bit n is set if the low wall of axis n conducts, so that E along it stays 0; it may be a magnetic conductor, or
  /// periodic.
  std::uint32_t conducting = 7;
};

/// The first of `count` points, sorted by cell, that is not before `cell`.
template <class Point>
[[nodiscard]] HEADRACE_HD inline std::int64_t first_point(const Point* points, std::int64_t count,
                                                          std::int64_t cell) noexcept {
  std::int64_t low = 0;
  std::int64_t high = count;
  while (low < high) {
    const std::int64_t middle = low + (high - low) / 2;
    if (points[middle].cell < cell) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

/// The number of a cell; beyond a periodic wall that of the cell of the domain which it is.
template <class Cell>
[[nodiscard]] HEADRACE_HD inline std::int64_t cell_number(const Cell& cell) noexcept {
  const auto wrapped = [&](std::int32_t at, int axis) {
    const std::int32_t count = cell.extent(axis);
    return std::int64_t{at < 0 ? at + count : at >= count ? at - count : at};
  };
  return (wrapped(cell.z(), 2) * cell.extent(1) + wrapped(cell.y(), 1)) * cell.extent(0) + wrapped(cell.x(), 0);
}

/// A source phase in one cell. Several sources add up in the order in which they were added.
template <class Value, class Cell>
HEADRACE_HD inline void add_sources(Cell cell, const FdtdSources<Value>& sources, std::int32_t magnetic) {
  const std::int64_t number = cell_number(cell);
  for (std::int64_t i = first_point(sources.points, sources.count, number);
       i < sources.count && sources.points[i].cell == number; ++i) {
    const FdtdSourcePoint& point = sources.points[i];
    const auto step = static_cast<std::int64_t>(cell.step());
    if (point.magnetic != magnetic || step >= point.count) continue;
    cell.set(point.field, cell.get(point.field) + sources.samples[point.first + step]);
  }
}

/// A receiver phase in one cell. If another part owns the cell, that part records it.
template <class Value, class Cell>
HEADRACE_HD inline void record(Cell cell, const FdtdReceivers<Value>& receivers) {
  if (!cell.owned()) return;
  const std::int64_t number = cell_number(cell);
  for (std::int64_t i = first_point(receivers.points, receivers.count, number);
       i < receivers.count && receivers.points[i].cell == number; ++i) {
    const FdtdReceiverPoint& point = receivers.points[i];
    const std::int64_t at = static_cast<std::int64_t>(cell.step()) - receivers.first_step;
    receivers.traces[std::int64_t{point.number} * receivers.capacity + at] = cell.get(point.field);
  }
}

}  // namespace headrace::grid
