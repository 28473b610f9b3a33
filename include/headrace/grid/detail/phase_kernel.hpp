#pragma once

#include <cstdint>

#include "headrace/device/group.hpp"
#include "headrace/device/kernel.hpp"
#include "headrace/grid/detail/cell.hpp"
#include "headrace/grid/detail/region.hpp"
#include "headrace/grid/detail/vector_cell.hpp"

// Precedes a loop with independent iterations, so that the compiler may vectorise it.
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

/// One phase of a stencil over the boxes of a region, with one item for each box. A thread of a CPU device processes
/// whole rows. On CUDA, 2^lanes_log2 neighbouring threads take neighbouring cells of a row, or vectors of them, and the
/// other threads of the block take the next rows.
///
/// A stencil may split a row for CPU devices, so that a value it would look up for each cell is constant in a run:
///
///   template <int PhaseNumber, class Row, class Visit>
///   HEADRACE_HD void for_each_run(const Row& row, std::int32_t begin, std::int32_t end, const Visit& visit) const;
///
/// calls visit(updater, first, end) for runs that together are the cells from `begin` to `end`; `updater` has an
/// update() like the stencil's, and gives the same values.
template <class Stencil, int PhaseNumber>
struct PhaseKernel {
  using Value = typename Stencil::Value;
  using CellRow = Row<Value, Stencil::kFields>;
  static constexpr const char* kName = Stencil::kName;
  static constexpr bool kFlushToZero = headrace::detail::flushes_to_zero<Stencil>();
  static constexpr int kThreadsMax = 256;

  template <class Group>
  HEADRACE_HD static void run(const Group& group, const Stencil& stencil, const FieldTable& table,
                              const Region& region) {
    if constexpr (Group::kLanes == 1 && is_vectored<Stencil>(PhaseNumber)) {
      if (region.vectors != 0) return run_vectors(group, stencil, table, region);
    }
    run_cells(group, stencil, table, region);
  }

  /// Ignores Region::vectors.
  template <class Group>
  HEADRACE_HD static void run_cells(const Group& group, const Stencil& stencil, const FieldTable& table,
                                    const Region& region) {
    const LocalBox& box = region.boxes[group.item()];
    if constexpr (Group::kLanes > 1) {
      const auto ny = static_cast<std::uint32_t>(box.size[1]);
      const std::uint32_t rows = ny * static_cast<std::uint32_t>(box.size[2]);
      for (std::uint32_t row = group.thread(); row < rows; row += group.thread_count()) {
        const CellRow cells(table, region, box.low[1] + static_cast<std::int32_t>(row % ny),
                            box.low[2] + static_cast<std::int32_t>(row / ny));
        update_row(stencil, cells, box.low[0], box.low[0] + box.size[0]);
      }
    } else {
      for_each_place(group, region, static_cast<std::uint32_t>(box.size[0]),
                     [&](std::uint32_t x, std::int32_t y, std::int32_t z) {
                       const CellRow cells(table, region, y, z);
                       stencil.template update<PhaseNumber>(
                           Cell<Stencil, PhaseNumber>(cells, box.low[0] + static_cast<std::int32_t>(x)));
                     });
    }
  }

 private:
  /// Rows of a panel. All planes of a panel are processed before the next panel, so the neighbouring rows that a row
  /// reads, in its plane and the next, are still in the cache.
  static constexpr std::uint32_t kPanelRows = 32;

  /// Vectors are aligned in memory. At the ends of a box they may contain cells beyond it, which are not touched.
  template <class Group>
  HEADRACE_HD static void run_vectors(const Group& group, const Stencil& stencil, const FieldTable& table,
                                      const Region& region) {
    using Vector = CellVector<Stencil, PhaseNumber>;
    const LocalBox& box = region.boxes[group.item()];
    const std::int32_t end = box.low[0] + box.size[0];
    const std::int32_t first = box.low[0] & -Vector::kCells;
    const auto across = static_cast<std::uint32_t>(end - first + Vector::kCells - 1) / Vector::kCells;
    for_each_place(group, region, across, [&](std::uint32_t number, std::int32_t y, std::int32_t z) {
      const CellRow cells(table, region, y, z);
      const std::int32_t x = first + static_cast<std::int32_t>(number) * Vector::kCells;
      if (x < box.low[0] || x + Vector::kCells > end) {
        for (std::int32_t one = x < box.low[0] ? box.low[0] : x; one < x + Vector::kCells && one < end; ++one) {
          stencil.template update<PhaseNumber>(Cell<Stencil, PhaseNumber>(cells, one));
        }
        return;
      }
      Vector vector(cells, x);
      HEADRACE_UNROLLED
      for (int i = 0; i < Vector::kCells; ++i) {
        stencil.template update<PhaseNumber>(VectorCell<Stencil, PhaseNumber>(vector, cells, x, i));
      }
      vector.store(cells, x);
    });
  }

  /// This thread's share of `across` places in each row of the group's box: visit(place, y, z).
  template <class Group, class Visit>
  HEADRACE_HD static void for_each_place(const Group& group, const Region& region, std::uint32_t across,
                                         const Visit& visit) {
    const LocalBox& box = region.boxes[group.item()];
    const auto ny = static_cast<std::uint32_t>(box.size[1]);
    const auto nz = static_cast<std::uint32_t>(box.size[2]);
    const std::uint32_t rows = ny * nz;
    const std::uint32_t lanes = 1U << region.lanes_log2;
    const std::uint32_t tiles_across = (across + lanes - 1) / lanes;
    const std::uint32_t rows_at_once = group.size() / lanes;
    const std::uint32_t tiles = tiles_across * ((rows + rows_at_once - 1) / rows_at_once);
    for (std::uint32_t tile = group.block(); tile < tiles; tile += group.block_count()) {
      const std::uint32_t row = tile / tiles_across * rows_at_once + group.rank() / lanes;
      const std::uint32_t place = tile % tiles_across * lanes + group.rank() % lanes;
      if (row >= rows || place >= across) continue;
      std::uint32_t y = row;
      std::uint32_t z = 0;
      if (nz > 1) {
        const std::uint32_t before = row / (kPanelRows * nz) * kPanelRows;  // rows of a plane in the previous panels
        const std::uint32_t high = ny - before < kPanelRows ? ny - before : kPanelRows;
        const std::uint32_t within = row - before * nz;
        y = before + within % high;
        z = within / high;
      }
      visit(place, box.low[1] + static_cast<std::int32_t>(y), box.low[2] + static_cast<std::int32_t>(z));
    }
  }

  HEADRACE_HD static void update_row(const Stencil& stencil, const CellRow& cells, std::int32_t begin,
                                     std::int32_t end) noexcept {
    if constexpr (requires { stencil.template for_each_run<PhaseNumber>(cells, begin, end, Nothing{}); }) {
      stencil.template for_each_run<PhaseNumber>(cells, begin, end,
                                                 [&](const auto& updater, std::int32_t first, std::int32_t after) {
                                                   update_run(updater, cells, first, after);
                                                 });
    } else {
      update_run(stencil, cells, begin, end);
    }
  }

  struct Nothing {
    template <class Updater>
    HEADRACE_HD void operator()(const Updater& /*updater*/, std::int32_t /*first*/,
                                std::int32_t /*after*/) const noexcept {}
  };

  template <class Updater>
  HEADRACE_HD static void update_run(const Updater& updater, const CellRow& cells, std::int32_t begin,
                                     std::int32_t end) noexcept {
    HEADRACE_INDEPENDENT
    for (std::int32_t x = begin; x < end; ++x)
      updater.template update<PhaseNumber>(Cell<Stencil, PhaseNumber>(cells, x));
  }
};

}  // namespace headrace::grid
