#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "headrace/grid/stencil.hpp"

/// Lists the operations on a slab while it is on the device, and the rows that each of them covers.
///
/// Rows are those along the slowest axis: rows of a plane, planes of a space. Slabs follow each other upwards. An
/// operation lags behind the end of the slab by as many rows as it takes for everything it reads above to be computed
/// and everything it overwrites to have been read. The next slab covers the rows that it leaves out. Every cell is
/// therefore computed once, from the same values as in a run that has the whole domain in device memory.
namespace headrace::grid {

/// The memory slot of each field.
using Slots = std::array<std::uint8_t, kFieldsMax>;

/// A phase, a pass, or the copy that precedes the phases around a pass.
struct Operation {
  enum class Kind : std::uint8_t { phase, pass, copy };

  Kind kind = Kind::phase;
  std::size_t phase = 0;                ///< The phase's number.
  const SweepProgram* sweep = nullptr;  ///< The pass.
  std::vector<Box> boxes{};             ///< The cells of the domain that it updates.
  Slots from{};                         ///< Where it finds each field.
  Slots to{};                           ///< Where a pass or a copy leaves each field.
  std::vector<int> copied{};            ///< The fields that a copy copies.
  std::uint64_t step = 0;               ///< Steps of the visit before its first one.
  FieldSet reads{};                     ///< Slots that it reads at the cell itself.
  FieldSet neighbours{};                ///< Slots that it reads at neighbours up to `reach` away.
  FieldSet writes{};                    ///< Slots that it writes.
  Layers reach{};
  std::int64_t lag = 0;  ///< Rows by which it stays behind the end of a slab.
};

/// Everything between a slab's copy in and its copy out.
struct Visit {
  std::uint64_t steps = 0;
  std::vector<Operation> operations;
  Slots after{};               ///< Where each field is at the end.
  std::int64_t end_lag = 0;    ///< Rows at the end of a slab that are not yet finished.
  std::int64_t kept_rows = 0;  ///< Rows below the next slab that it needs on the device.
  FieldSet loaded;             ///< Fields whose values from before the visit are needed.
  FieldSet changed;            ///< Fields that the visit changes.
  FieldSet touched;            ///< Slots that any operation uses.
};

/// The visit of `steps` steps. After the last visit of a call, every field is as phases alone leave it.
[[nodiscard]] Visit visit_of(const StencilProgram& program, const Extent& extent, std::size_t steps, bool last_of_call,
                             std::size_t axis);

/// The cells at which any phase reads or writes a field: empty for an unused field.
[[nodiscard]] std::vector<Box> cells_in_use(const StencilProgram& program, const Extent& extent, int field);

/// Whether a field keeps its values and its place, and is read only at the cell itself.
[[nodiscard]] bool stays(const StencilProgram& program, int field);

}  // namespace headrace::grid
