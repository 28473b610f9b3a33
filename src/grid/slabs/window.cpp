#include "grid/slabs/window.hpp"

#include <algorithm>
#include <cstring>

#include "grid/copy_boxes.hpp"

namespace headrace::grid {

namespace {

/// The most box copies that are collected for one launch, over the pieces of all fields.
constexpr std::size_t kCopiesMax = 1024;

[[nodiscard]] constexpr std::size_t aligned(std::size_t bytes) noexcept { return (bytes + 255) / 256 * 256; }

[[nodiscard]] std::size_t row_bytes(const PartLayout& layout) noexcept {
  return aligned(static_cast<std::size_t>(layout.own.size(0)) * layout.value_bytes);
}

[[nodiscard]] std::size_t bytes_on_the_way(const HostPiece& piece, std::int64_t slab_rows, std::size_t axis) noexcept {
  return aligned(piece.slice_bytes * static_cast<std::size_t>(std::min(slab_rows, piece.slices(axis))));
}

/// The same layout with another number of rows along the axis.
[[nodiscard]] PartLayout with_rows(PartLayout layout, std::size_t axis, std::int64_t rows) noexcept {
  layout.own.high[axis] = layout.own.low[axis] + rows;
  const Box all = layout.own.grow(layout.pads);
  layout.plane = layout.pitch * all.size(1);
  layout.origin = layout.pads.low[2] * layout.plane + layout.pads.low[1] * layout.pitch + layout.pads.low[0];
  layout.field_bytes = layout.plane * all.size(2) * static_cast<std::int64_t>(layout.value_bytes);
  return layout;
}

}  // namespace

SlabWindow::SlabWindow(Device device, const PartLayout& layout, std::size_t axis, int slots, std::size_t bytes)
    : layout_(layout),
      axis_(axis),
      slots_(slots),
      memory_(device, MemoryKind::device, bytes),
      filling_(device, MemoryKind::pinned, row_bytes(layout)) {
  copies_.reserve(kCopiesMax);
}

WindowShape SlabWindow::shape_for(const PartLayout& like, std::size_t axis, int slots, std::int64_t kept_rows,
                                  std::int64_t slab_rows, std::span<const HostPiece> in,
                                  std::span<const HostPiece> out) {
  WindowShape shape{.rows = kept_rows + slab_rows, .slab_rows = slab_rows};
  for (const HostPiece& piece : in) shape.in_bytes += bytes_on_the_way(piece, slab_rows, axis);
  for (const HostPiece& piece : out) shape.out_bytes += bytes_on_the_way(piece, slab_rows, axis);
  const std::size_t window = aligned(with_rows(like, axis, shape.rows).memory_bytes(slots));
  shape.total_bytes = window + shape.in_bytes + shape.out_bytes + row_bytes(like);
  return shape;
}

void SlabWindow::place(std::vector<Transfer>& transfers, std::int64_t slab_rows, std::size_t axis) {
  std::size_t next = 0;
  for (Transfer& transfer : transfers) {
    transfer.offset = next;
    next += bytes_on_the_way(*transfer.piece, slab_rows, axis);
  }
}

void SlabWindow::take(const WindowShape& shape) noexcept {
  shape_ = shape;
  layout_ = with_rows(layout_, axis_, shape.rows);
  const std::size_t window = aligned(layout_.memory_bytes(slots_));
  base_ = memory_.data() + layout_.front_bytes + layout_.origin * static_cast<std::int64_t>(layout_.value_bytes);
  in_ = memory_.data() + window;
  out_ = in_ + shape.in_bytes;
  row_ = out_ + shape.out_bytes;
}

Status SlabWindow::clear(StreamRef stream) noexcept {
  return stream.fill(memory_.data(), 0, static_cast<std::size_t>(in_ - memory_.data()));
}

void SlabWindow::move_to(std::int64_t first_row) noexcept {
  layout_.own.low[axis_] = first_row;
  layout_.own.high[axis_] = first_row + shape_.rows;
}

PartLayout SlabWindow::layout(std::int64_t end_row) const noexcept {
  PartLayout made = layout_;
  made.own.high[axis_] = std::min(made.own.high[axis_], end_row);
  made.pads.low[axis_] = 0;  // only zeros lie there
  made.pads.high[axis_] = 0;
  return made;
}

FieldTable SlabWindow::table(const Slots& slots) const noexcept {
  FieldTable made{.base = base_, .stride_bytes = layout_.stride_bytes(), .slots = {}};
  std::ranges::copy(slots, made.slots);
  return made;
}

std::byte* SlabWindow::cell(std::size_t slot, const Offsets& at) const noexcept {
  return base_ + static_cast<std::int64_t>(slot) * layout_.stride_bytes() +
         layout_.at(at) * static_cast<std::int64_t>(layout_.value_bytes);
}

std::byte* SlabWindow::slice(std::size_t slot, std::int64_t row) const noexcept {
  Offsets first{};
  first[axis_] = row;
  const std::int64_t lead = layout_.pads.low[0] + (axis_ == 2 ? layout_.pads.low[1] * layout_.pitch : 0);
  return cell(slot, first) - lead * static_cast<std::int64_t>(layout_.value_bytes);
}

std::size_t SlabWindow::slice_bytes() const noexcept {
  return static_cast<std::size_t>(axis_ == 2 ? layout_.plane : layout_.pitch) * layout_.value_bytes;
}

RowRange SlabWindow::common(const HostPiece& piece, RowRange rows) const noexcept {
  return {.first = std::max(rows.first, piece.box.low[axis_]), .end = std::min(rows.end, piece.box.high[axis_])};
}

BoxCopy SlabWindow::box_copy(const HostPiece& piece, RowRange rows) const noexcept {
  BoxCopy made;
  for (std::size_t along = 0; along < 3; ++along) made.size[along] = static_cast<std::int32_t>(piece.box.size(along));
  made.size[axis_] = static_cast<std::int32_t>(rows.count());
  made.from_pitch = made.to_pitch = static_cast<std::int32_t>(layout_.pitch);
  made.from_plane = made.to_plane = layout_.plane;
  return made;
}

Status SlabWindow::flush(StreamRef stream) noexcept {
  const Status copied = copy_boxes(stream, copies_, layout_.value_bytes);
  copies_.clear();
  return copied;
}

Status SlabWindow::copy_in(StreamRef stream, std::span<const Transfer> transfers, RowRange rows) noexcept {
  for (const Transfer& transfer : transfers) {
    const HostPiece& piece = *transfer.piece;
    const RowRange its = common(piece, rows);
    if (its.count() <= 0) continue;
    const std::byte* const from =
        piece.data + static_cast<std::size_t>(its.first - piece.box.low[axis_]) * piece.slice_bytes;
    const Status copied =
        stream.copy(in_ + transfer.offset, from, static_cast<std::size_t>(its.count()) * piece.slice_bytes);
    if (!copied) return copied;
  }
  return {};
}

Status SlabWindow::copy_out(StreamRef stream, std::span<const Transfer> transfers, RowRange rows) noexcept {
  for (const Transfer& transfer : transfers) {
    const HostPiece& piece = *transfer.piece;
    const RowRange its = common(piece, rows);
    if (its.count() <= 0) continue;
    std::byte* const to = piece.data + static_cast<std::size_t>(its.first - piece.box.low[axis_]) * piece.slice_bytes;
    const Status copied =
        stream.copy(to, out_ + transfer.offset, static_cast<std::size_t>(its.count()) * piece.slice_bytes);
    if (!copied) return copied;
  }
  return {};
}

Status SlabWindow::unpack(StreamRef stream, std::span<const Transfer> transfers, RowRange rows) noexcept {
  for (const Transfer& transfer : transfers) {
    const HostPiece& piece = *transfer.piece;
    const RowRange its = common(piece, rows);
    if (its.count() <= 0) continue;
    const std::byte* const from = in_ + transfer.offset;
    if (piece.whole_rows) {
      const Status copied =
          stream.copy(slice(transfer.slot, its.first), from, static_cast<std::size_t>(its.count()) * piece.slice_bytes);
      if (!copied) return copied;
      continue;
    }
    BoxCopy& copy = copies_.emplace_back(box_copy(piece, its));
    Offsets low = piece.box.low;
    low[axis_] = its.first;
    copy.from = from;
    copy.to = cell(transfer.slot, low);
    copy.from_pitch = static_cast<std::int32_t>(piece.pitch);
    copy.from_plane = piece.plane;
  }
  return flush(stream);
}

Status SlabWindow::pack(StreamRef stream, std::span<const Transfer> transfers, RowRange rows) noexcept {
  for (const Transfer& transfer : transfers) {
    const HostPiece& piece = *transfer.piece;
    const RowRange its = common(piece, rows);
    if (its.count() <= 0) continue;
    std::byte* const to = out_ + transfer.offset;
    if (piece.whole_rows) {
      const Status copied =
          stream.copy(to, slice(transfer.slot, its.first), static_cast<std::size_t>(its.count()) * piece.slice_bytes);
      if (!copied) return copied;
      continue;
    }
    BoxCopy& copy = copies_.emplace_back(box_copy(piece, its));
    Offsets low = piece.box.low;
    low[axis_] = its.first;
    copy.from = cell(transfer.slot, low);
    copy.to = to;
    copy.to_pitch = static_cast<std::int32_t>(piece.pitch);
    copy.to_plane = piece.plane;
  }
  return flush(stream);
}

Status SlabWindow::keep(StreamRef stream, FieldSet slots, const std::vector<std::vector<HostPiece>>& pieces,
                        std::int64_t kept, std::int64_t end_row) noexcept {
  const std::int64_t first = end_row - kept;  // of the rows that stay
  const std::int64_t down = first - layout_.own.low[axis_];
  if (down <= 0) return {};
  // Copies in blocks of rows that do not overlap their destination.
  for (std::int64_t done = 0; done < kept; done += down) {
    const RowRange rows{.first = first + done, .end = first + std::min(done + down, kept)};
    for (std::size_t slot = 0; slot < static_cast<std::size_t>(slots_); ++slot) {
      if (!slots.contains(static_cast<int>(slot))) continue;
      const bool parts = slot < pieces.size() && !pieces[slot].empty() && !pieces[slot].front().whole_rows;
      if (!parts) {
        const Status copied = stream.copy(slice(slot, rows.first - down), slice(slot, rows.first),
                                          static_cast<std::size_t>(rows.count()) * slice_bytes());
        if (!copied) return copied;
        continue;
      }
      for (const HostPiece& piece : pieces[slot]) {
        const RowRange its = common(piece, rows);
        if (its.count() <= 0) continue;
        BoxCopy& copy = copies_.emplace_back(box_copy(piece, its));
        Offsets low = piece.box.low;
        low[axis_] = its.first;
        copy.from = cell(slot, low);
        low[axis_] -= down;
        copy.to = cell(slot, low);
      }
    }
    const Status copied = flush(stream);
    if (!copied) return copied;
  }
  return {};
}

Status SlabWindow::copy_cells(StreamRef stream, std::span<const Box> boxes, std::size_t from, std::size_t to) noexcept {
  for (const Box& box : boxes) {
    BoxCopy& copy = copies_.emplace_back();
    for (std::size_t along = 0; along < 3; ++along) copy.size[along] = static_cast<std::int32_t>(box.size(along));
    copy.from_pitch = copy.to_pitch = static_cast<std::int32_t>(layout_.pitch);
    copy.from_plane = copy.to_plane = layout_.plane;
    copy.from = cell(from, box.low);
    copy.to = cell(to, box.low);
  }
  return flush(stream);
}

Status SlabWindow::clear(StreamRef stream, FieldSet slots, RowRange rows) noexcept {
  const RowRange its{.first = std::max(rows.first, layout_.own.low[axis_]),
                     .end = std::min(rows.end, layout_.own.high[axis_])};
  if (its.count() <= 0) return {};
  for (std::size_t slot = 0; slot < static_cast<std::size_t>(slots_); ++slot) {
    if (!slots.contains(static_cast<int>(slot))) continue;
    const Status filled = stream.fill(slice(slot, its.first), 0, static_cast<std::size_t>(its.count()) * slice_bytes());
    if (!filled) return filled;
  }
  return {};
}

Status SlabWindow::fill(StreamRef stream, std::size_t slot, const std::byte* value) noexcept {
  const auto row = static_cast<std::size_t>(layout_.own.size(0)) * layout_.value_bytes;
  for (std::size_t at = 0; at < row; at += layout_.value_bytes)
    std::memcpy(filling_.data() + at, value, layout_.value_bytes);
  Status status = stream.copy(row_, filling_.data(), row);
  BoxCopy& copy = copies_.emplace_back();
  copy.from = row_;  // the same row is the source of each copy
  copy.to = cell(slot, layout_.own.low);
  copy.to_pitch = static_cast<std::int32_t>(layout_.pitch);
  copy.to_plane = layout_.plane;
  for (std::size_t along = 0; along < 3; ++along) copy.size[along] = static_cast<std::int32_t>(layout_.own.size(along));
  if (status) status = flush(stream);
  copies_.clear();
  return status ? stream.wait() : status;
}

}  // namespace headrace::grid
