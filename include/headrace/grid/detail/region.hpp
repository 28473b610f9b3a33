#pragma once

#include <cstddef>
#include <cstdint>

#include "headrace/device/group.hpp"
#include "headrace/grid/detail/phase.hpp"

/// The parts of a domain as kernels see them.
namespace headrace::grid {

/// Where a part's fields are: cell (0, 0, 0) of the part, in field f, is at base + slots[f] * stride_bytes.
struct FieldTable {
  std::byte* base = nullptr;
  std::int64_t stride_bytes = 0;
  std::uint8_t slots[kFieldsMax] = {};

  template <class Value>
  [[nodiscard]] HEADRACE_HD Value* origin(int field) const noexcept {
    return reinterpret_cast<Value*>(base + slots[field] * stride_bytes);
  }
};

/// Cells relative to the first cell of a part; below 0 in its ghosts on the low side.
struct LocalBox {
  std::int32_t low[3];
  std::int32_t size[3];
};

/// The boxes that one launch updates, one for each item.
struct Region {
  static constexpr int kBoxesMax = 6;

  LocalBox boxes[kBoxesMax] = {};
  std::int32_t own_low[3] = {};   ///< The part's first cell in the domain.
  std::int32_t own_size[3] = {};  ///< The part's number of cells.
  std::int32_t extent[3] = {};    ///< The extent of the domain.
  std::int32_t lanes_log2 = 0;    ///< On CUDA: neighbouring threads of a row.
  std::int32_t vectors = 0;       ///< 1 if each of them takes 16 bytes (CellVector), 0 if it takes a cell.
  std::int64_t pitch = 0;         ///< Values from one row to the next.
  std::int64_t plane = 0;         ///< Values from one plane to the next.
  std::uint64_t step = 0;         ///< Steps done before this one.
};

}  // namespace headrace::grid
