#include "grid/slabs/host_fields.hpp"

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include "grid/patches.hpp"

namespace headrace::grid {

HostFields::HostFields(Device device, const Extent& extent, std::size_t axis, const PartLayout& like, int field_count)
    : device_(device), extent_(extent), axis_(axis), like_(like), fields_(static_cast<std::size_t>(field_count)) {}

std::vector<HostPiece> HostFields::pieces_of(const std::vector<Box>& boxes) const {
  const auto value_bytes = static_cast<std::int64_t>(like_.value_bytes);
  const Box whole = Box::whole(extent_);
  std::vector<HostPiece> made;
  for (const Box& box : boxes) {
    HostPiece piece{.box = box, .whole_rows = true};
    for (std::size_t across = 0; across < axis_; ++across) {
      if (box.low[across] != 0 || box.high[across] != whole.high[across]) piece.whole_rows = false;
    }
    if (piece.whole_rows) {
      piece.pitch = like_.pitch;
      piece.plane = like_.plane;
      piece.lead = like_.pads.low[0] + (axis_ == 2 ? like_.pads.low[1] * like_.pitch : 0);
    } else {
      piece.pitch = box.size(0);
      piece.plane = box.size(0) * box.size(1);
    }
    piece.slice_bytes = static_cast<std::size_t>((axis_ == 2 ? piece.plane : piece.pitch) * value_bytes);
    made.push_back(piece);
  }
  return made;
}

template <class Visit>
void HostFields::each_row(const HostPiece& piece, const Box& within, const Visit& visit) const {
  const Box box = piece.box.intersect(within);
  if (box.empty()) return;
  const auto value_bytes = static_cast<std::int64_t>(like_.value_bytes);
  for (std::int64_t z = box.low[2]; z < box.high[2]; ++z) {
    for (std::int64_t y = box.low[1]; y < box.high[1]; ++y) {
      const std::int64_t in_piece = piece.lead + (z - piece.box.low[2]) * piece.plane +
                                    (y - piece.box.low[1]) * piece.pitch + (box.low[0] - piece.box.low[0]);
      const std::int64_t in_array = (z * extent_.ny + y) * extent_.nx + box.low[0];
      visit(in_piece * value_bytes, in_array * value_bytes, static_cast<std::size_t>(box.size(0) * value_bytes));
    }
  }
}

void HostFields::fill(std::byte* to, const std::byte* value, std::size_t bytes) const noexcept {
  for (std::size_t at = 0; at < bytes; at += like_.value_bytes) std::memcpy(to + at, value, like_.value_bytes);
}

/// Allocates memory for these boxes, and fills it with the values that `like` has there.
HostFields::Field HostFields::make(const Field& like, const std::vector<Box>& boxes) const {
  Field made;
  made.value = like.value;
  made.pieces = pieces_of(boxes);
  std::size_t bytes = 0;
  for (const HostPiece& piece : made.pieces) bytes += piece.slice_bytes * static_cast<std::size_t>(piece.slices(axis_));
  made.memory = Buffer(device_, MemoryKind::pinned, bytes);
  std::memset(made.memory.data(), 0, bytes);  // including cells outside the domain
  std::byte* next = made.memory.data();
  const bool zero = like.value == std::array<std::byte, 8>{};
  for (HostPiece& piece : made.pieces) {
    piece.data = next;
    next += piece.slice_bytes * static_cast<std::size_t>(piece.slices(axis_));
    if (!zero && like.pieces.empty()) {
      each_row(piece, piece.box, [&](std::int64_t in_piece, std::int64_t, std::size_t row_bytes) {
        fill(piece.data + in_piece, like.value.data(), row_bytes);
      });
    }
    for (const HostPiece& other : like.pieces) {
      each_row(other, piece.box, [&](std::int64_t in_other, std::int64_t in_array, std::size_t row_bytes) {
        const std::int64_t cell = in_array / static_cast<std::int64_t>(like_.value_bytes);
        const Offsets at{cell % extent_.nx, cell / extent_.nx % extent_.ny, cell / extent_.nx / extent_.ny};
        const std::int64_t place = piece.lead + (at[2] - piece.box.low[2]) * piece.plane +
                                   (at[1] - piece.box.low[1]) * piece.pitch + (at[0] - piece.box.low[0]);
        std::memcpy(piece.data + place * static_cast<std::int64_t>(like_.value_bytes), other.data + in_other,
                    row_bytes);
      });
    }
  }
  return made;
}

bool HostFields::zero_outside(const std::byte* values, const std::vector<Box>& boxes) const {
  const Box whole = Box::whole(extent_);
  bool zero = true;
  for (const Box& box : outside(std::span(&whole, 1), boxes)) {
    each_row({.box = box}, box, [&](std::int64_t, std::int64_t in_array, std::size_t bytes) {
      const auto is_zero = [](std::byte byte) { return byte == std::byte{0}; };
      zero = zero && std::all_of(values + in_array, values + in_array + bytes, is_zero);
    });
  }
  return zero;
}

bool HostFields::one_value(const std::byte* values) const {
  const std::size_t bytes = static_cast<std::size_t>(extent_.cells()) * like_.value_bytes;
  return std::memcmp(values, values + like_.value_bytes, bytes - like_.value_bytes) == 0;
}

bool HostFields::has(int field, const std::vector<Box>& boxes) const {
  const std::vector<HostPiece>& pieces = its(field).pieces;
  return !pieces.empty() && std::ranges::all_of(boxes, [&](const Box& box) {
    return std::ranges::any_of(pieces, [&](const HostPiece& piece) { return piece.box.contains(box); });
  });
}

void HostFields::provide(int field, const std::vector<Box>& in_use) {
  Field& mine = its(field);
  if (has(field, in_use)) return;
  const bool all_zero = mine.value == std::array<std::byte, 8>{};
  std::vector<Box> boxes = in_use;
  if (boxes.empty() || (mine.pieces.empty() && !all_zero)) boxes = {Box::whole(extent_)};
  for (const HostPiece& piece : mine.pieces) boxes.push_back(piece.box);
  mine = make(mine, disjoint(boxes));
  mine.value = {};
}

void HostFields::set(int field, const std::byte* values, bool one_for_all, const std::vector<Box>& in_use) {
  Field& mine = its(field);
  if (one_for_all || one_value(values)) {
    mine = {};
    std::memcpy(mine.value.data(), values, like_.value_bytes);
    return;
  }
  const bool part = !in_use.empty() && zero_outside(values, in_use);
  const std::vector<Box> boxes = part ? in_use : std::vector<Box>{Box::whole(extent_)};
  if (!has(field, boxes)) mine = {};  // its values are not used
  mine.value = {};
  provide(field, boxes);
  for (const HostPiece& piece : mine.pieces) {
    each_row(piece, piece.box, [&](std::int64_t in_piece, std::int64_t in_array, std::size_t bytes) {
      std::memcpy(piece.data + in_piece, values + in_array, bytes);
    });
  }
}

void HostFields::get(int field, std::byte* values) const {
  const Field& mine = its(field);
  const std::size_t bytes = static_cast<std::size_t>(extent_.cells()) * like_.value_bytes;
  const bool whole = !mine.pieces.empty() && mine.pieces.front().box == Box::whole(extent_);
  if (!whole) fill(values, mine.value.data(), bytes);
  for (const HostPiece& piece : mine.pieces) {
    each_row(piece, piece.box, [&](std::int64_t in_piece, std::int64_t in_array, std::size_t row_bytes) {
      std::memcpy(values + in_array, piece.data + in_piece, row_bytes);
    });
  }
}

std::size_t HostFields::bytes() const noexcept {
  std::size_t bytes = 0;
  for (const Field& field : fields_) bytes += field.memory.bytes();
  return bytes;
}

}  // namespace headrace::grid
