#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "headrace/grid/detail/box.hpp"
#include "headrace/grid/detail/phase.hpp"

namespace headrace::grid {

/// Lets operations go through the rows of a domain together, each some rows behind the one before it. Rows are those
/// along one axis. An operation lags behind by as many rows as it takes for everything it reads above to be computed
/// and everything it overwrites to have been read. Every cell is then computed from the same values as when each
/// operation goes through the whole domain before the next one begins.
class Lags {
 public:
  explicit Lags(std::size_t axis) noexcept : axis_(axis) {}

  /// The lag of the next operation in rows, at least that of the one before: an operation that uses a row only at its
  /// own cells finds it in the correct state.
  /// @param reads  what it reads at the cell itself
  /// @param neighbours  what it reads at neighbours up to `reach` away
  /// @param writes  what it writes
  [[nodiscard]] std::int64_t next(FieldSet reads, FieldSet neighbours, FieldSet writes, const Layers& reach) noexcept {
    for (std::size_t slot = 0; slot < kFieldsMax; ++slot) {
      const int number = static_cast<int>(slot);
      if (neighbours.contains(number)) lag_ = std::max(lag_, written_[slot] + reach.high[axis_]);
      if (writes.contains(number)) lag_ = std::max(lag_, read_[slot]);
    }
    for (std::size_t slot = 0; slot < kFieldsMax; ++slot) {
      const int number = static_cast<int>(slot);
      if (neighbours.contains(number)) read_[slot] = std::max(read_[slot], lag_ + reach.low[axis_]);
      if (reads.contains(number)) read_[slot] = std::max(read_[slot], lag_);
      if (writes.contains(number)) written_[slot] = lag_;
    }
    return lag_;
  }

 private:
  std::size_t axis_;
  std::int64_t lag_ = 0;
  std::array<std::int64_t, kFieldsMax> written_{};  ///< By slot: the lag of its last writer.
  std::array<std::int64_t, kFieldsMax> read_{};     ///< By slot: the lag from which its values are no longer needed.
};

}  // namespace headrace::grid
