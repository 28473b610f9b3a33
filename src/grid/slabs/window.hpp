#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "grid/layout.hpp"
#include "grid/slabs/host_fields.hpp"
#include "grid/slabs/visit.hpp"
#include "headrace/device/buffer.hpp"
#include "headrace/device/stream.hpp"
#include "headrace/grid/detail/box_copy.hpp"
#include "headrace/grid/detail/region.hpp"

/// The device memory of a domain that the host keeps: a window of rows, and buffers for copies in and out.
namespace headrace::grid {

/// Cells that move between a piece in host memory and a slot on the device.
struct Transfer {
  std::size_t slot = 0;
  const HostPiece* piece = nullptr;
  std::size_t offset = 0;  ///< Offset in the copy buffer, in bytes.
};

/// Rows of the domain, from `first` up to but not including `end`.
struct RowRange {
  std::int64_t first = 0;
  std::int64_t end = 0;
  [[nodiscard]] std::int64_t count() const noexcept { return end - first; }
};

/// The sizes of a window and of its copy buffers.
struct WindowShape {
  std::int64_t rows = 0;        ///< Rows of the window: those kept from previous slabs, and a slab.
  std::int64_t slab_rows = 0;   ///< The most rows of a slab.
  std::size_t in_bytes = 0;     ///< Size of the buffer for copies in.
  std::size_t out_bytes = 0;    ///< Size of the buffer for copies out.
  std::size_t total_bytes = 0;  ///< Total size on the device.
};

/// Holds the same rows of the domain in every slot; the rows advance with each slab. Copies to and from the host use
/// separate buffers, so that they overlap with computation.
class SlabWindow {
 public:
  /// @param layout  the layout of a window of any number of rows
  /// Throws as Buffer does.
  SlabWindow(Device device, const PartLayout& layout, std::size_t axis, int slots, std::size_t bytes);

  /// The size of a window of `slots` slots, with these pieces in slabs of `slab_rows` rows, and a row to fill from.
  [[nodiscard]] static WindowShape shape_for(const PartLayout& like, std::size_t axis, int slots,
                                             std::int64_t kept_rows, std::int64_t slab_rows,
                                             std::span<const HostPiece> in, std::span<const HostPiece> out);
  /// Assigns consecutive buffer offsets to the transfers of slabs of at most `slab_rows` rows.
  static void place(std::vector<Transfer>& transfers, std::int64_t slab_rows, std::size_t axis);

  /// Takes a shape that fits the memory. The window's contents are lost.
  void take(const WindowShape& shape) noexcept;
  /// Sets the whole window to 0.
  [[nodiscard]] Status clear(StreamRef stream) noexcept;
  [[nodiscard]] const WindowShape& shape() const noexcept { return shape_; }
  /// Moves the window so that its first row is this row of the domain.
  void move_to(std::int64_t first_row) noexcept;
  /// The window's layout, with the rows up to `end_row` of the domain.
  [[nodiscard]] PartLayout layout(std::int64_t end_row) const noexcept;
  [[nodiscard]] FieldTable table(const Slots& slots) const noexcept;

  // Each of these enqueues copies of rows of the domain.
  [[nodiscard]] Status copy_in(StreamRef stream, std::span<const Transfer> transfers, RowRange rows) noexcept;
  [[nodiscard]] Status unpack(StreamRef stream, std::span<const Transfer> transfers, RowRange rows) noexcept;
  [[nodiscard]] Status pack(StreamRef stream, std::span<const Transfer> transfers, RowRange rows) noexcept;
  [[nodiscard]] Status copy_out(StreamRef stream, std::span<const Transfer> transfers, RowRange rows) noexcept;
  /// Moves the last `kept` rows up to `end_row` to the beginning: all cells of each slot, or those of its pieces.
  [[nodiscard]] Status keep(StreamRef stream, FieldSet slots, const std::vector<std::vector<HostPiece>>& pieces,
                            std::int64_t kept, std::int64_t end_row) noexcept;
  /// Copies boxes of cells from slots to other slots.
  [[nodiscard]] Status copy_cells(StreamRef stream, std::span<const Box> boxes, std::size_t from,
                                  std::size_t to) noexcept;
  /// Sets rows to 0.
  [[nodiscard]] Status clear(StreamRef stream, FieldSet slots, RowRange rows) noexcept;
  /// Sets every cell of a slot to a value. Waits for the device.
  [[nodiscard]] Status fill(StreamRef stream, std::size_t slot, const std::byte* value) noexcept;

 private:
  [[nodiscard]] std::byte* cell(std::size_t slot, const Offsets& at) const noexcept;
  /// Address of a row of the domain, including what lies before its first cell.
  [[nodiscard]] std::byte* slice(std::size_t slot, std::int64_t row) const noexcept;
  [[nodiscard]] std::size_t slice_bytes() const noexcept;
  /// The rows of a piece that lie in `rows`.
  [[nodiscard]] RowRange common(const HostPiece& piece, RowRange rows) const noexcept;
  [[nodiscard]] BoxCopy box_copy(const HostPiece& piece, RowRange rows) const noexcept;
  [[nodiscard]] Status flush(StreamRef stream) noexcept;

  PartLayout layout_;
  std::size_t axis_;
  int slots_;
  Buffer memory_;
  WindowShape shape_;
  std::byte* base_ = nullptr;  ///< The first cell of the first row of slot 0.
  std::byte* in_ = nullptr;
  std::byte* out_ = nullptr;
  std::byte* row_ = nullptr;  ///< A row to fill from.
  Buffer filling_;            ///< Host copy of row_, in page-locked memory.
  std::vector<BoxCopy> copies_;
};

}  // namespace headrace::grid
