#pragma once

#include <cstdint>

#include "headrace/device/group.hpp"
#include "headrace/grid/cell.hpp"
#include "headrace/grid/region.hpp"

// Before a loop whose iterations depend on none of each other, so that it may be vectorised.
#if defined(__CUDA_ARCH__)
#define HEADRACE_INDEPENDENT
#elif defined(__clang__)
#define HEADRACE_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#elif defined(__GNUC__)
#define HEADRACE_INDEPENDENT _Pragma("GCC ivdep")
#else
#define HEADRACE_INDEPENDENT
#endif

namespace headrace::grid {

/// One phase of a stencil over the boxes of a region, an item a box. A thread of a CPU device goes along rows; on CUDA
/// 2^lanes_log2 neighbouring threads take neighbouring cells of a row, and the rest of the block the rows after it.
template <class Stencil, int PhaseNumber>
struct PhaseKernel {
  using Value = typename Stencil::Value;
  using CellRow = Row<Value, Stencil::kFields>;
  static constexpr const char* kName = Stencil::kName;

  template <class Group>
  HEADRACE_HD static void run(const Group& group, const Stencil& stencil, const FieldTable& table,
                              const Region& region) {
    const LocalBox& box = region.boxes[group.item()];
    const auto ny = static_cast<std::uint32_t>(box.size[1]);
    const std::uint32_t rows = ny * static_cast<std::uint32_t>(box.size[2]);
    if constexpr (Group::kLanes > 1) {
      for (std::uint32_t row = group.thread(); row < rows; row += group.thread_count()) {
        const CellRow cells = row_of(table, region, box, row, ny);
        update_row(stencil, cells, box.low[0], box.low[0] + box.size[0]);
      }
    } else {
      const std::uint32_t lanes = 1U << region.lanes_log2;
      const std::uint32_t across = (static_cast<std::uint32_t>(box.size[0]) + lanes - 1) / lanes;
      const std::uint32_t rows_at_once = group.size() / lanes;
      const std::uint32_t lane = group.rank() % lanes;
      const std::uint32_t tiles = across * ((rows + rows_at_once - 1) / rows_at_once);
      for (std::uint32_t tile = group.block(); tile < tiles; tile += group.block_count()) {
        const std::uint32_t row = tile / across * rows_at_once + group.rank() / lanes;
        const std::uint32_t x = tile % across * lanes + lane;
        if (row >= rows || x >= static_cast<std::uint32_t>(box.size[0])) continue;
        const CellRow cells = row_of(table, region, box, row, ny);
        stencil.template update<PhaseNumber>(
            Cell<Stencil, PhaseNumber>(cells, box.low[0] + static_cast<std::int32_t>(x)));
      }
    }
  }

 private:
  [[nodiscard]] HEADRACE_HD static CellRow row_of(const FieldTable& table, const Region& region, const LocalBox& box,
                                                  std::uint32_t row, std::uint32_t ny) noexcept {
    return CellRow(table, region, box.low[1] + static_cast<std::int32_t>(row % ny),
                   box.low[2] + static_cast<std::int32_t>(row / ny));
  }

  HEADRACE_HD static void update_row(const Stencil& stencil, const CellRow& cells, std::int32_t begin,
                                     std::int32_t end) noexcept {
    HEADRACE_INDEPENDENT
    for (std::int32_t x = begin; x < end; ++x)
      stencil.template update<PhaseNumber>(Cell<Stencil, PhaseNumber>(cells, x));
  }
};

}  // namespace headrace::grid
