#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "grid/layout.hpp"
#include "headrace/device/buffer.hpp"
#include "headrace/device/device.hpp"
#include "headrace/grid/detail/box.hpp"

/// The fields of a domain that is larger than the memory of its device, in page-locked host memory.
namespace headrace::grid {

/// Cells of a field that lie together. Where they are whole rows, those lie as on the device, so that a copy of many
/// is one; other boxes have nothing between their rows.
struct HostPiece {
  Box box;
  bool whole_rows = false;      ///< All cells across the slabs' axis.
  std::int64_t pitch = 0;       ///< In values, from a row to the next,
  std::int64_t plane = 0;       ///< and from a plane to the next.
  std::int64_t lead = 0;        ///< Values ahead of the first cell.
  std::size_t slice_bytes = 0;  ///< The bytes of one step along the slabs' axis.
  std::byte* data = nullptr;    ///< Null until there is memory for it.
  [[nodiscard]] std::int64_t slices(std::size_t axis) const noexcept { return box.size(axis); }
};

/// Owns the values of all fields. A field with one value everywhere has no memory. Not safe for concurrent use.
class HostFields {
 public:
  /// @param like  how cells lie on the device, whatever the number of rows along `axis`
  HostFields(Device device, const Extent& extent, std::size_t axis, const PartLayout& like, int field_count);

  /// Takes an array of the whole domain, or a value for all cells. `in_use`: the cells that phases use; others need no
  /// memory while they are 0. Throws as Buffer does.
  void set(int field, const std::byte* values, bool one_for_all, const std::vector<Box>& in_use);
  /// Copies a field into an array of the whole domain.
  void get(int field, std::byte* values) const;
  /// Provides memory for these cells, if they have none. Throws as Buffer does.
  void provide(int field, const std::vector<Box>& in_use);

  /// Whether the field has the same value everywhere, and no memory.
  [[nodiscard]] bool uniform(int field) const noexcept { return its(field).pieces.empty(); }
  /// The value of such a field.
  [[nodiscard]] const std::byte* value(int field) const noexcept { return its(field).value.data(); }
  [[nodiscard]] const std::vector<HostPiece>& pieces(int field) const noexcept { return its(field).pieces; }
  /// Pieces that provide() would make of these cells, without memory.
  [[nodiscard]] std::vector<HostPiece> pieces_of(const std::vector<Box>& boxes) const;
  /// Page-locked memory of all fields.
  [[nodiscard]] std::size_t bytes() const noexcept;

 private:
  struct Field {
    std::array<std::byte, 8> value{};
    std::vector<HostPiece> pieces;
    Buffer memory;
  };
  [[nodiscard]] const Field& its(int field) const noexcept { return fields_[static_cast<std::size_t>(field)]; }
  [[nodiscard]] Field& its(int field) noexcept { return fields_[static_cast<std::size_t>(field)]; }
  [[nodiscard]] bool has(int field, const std::vector<Box>& boxes) const;
  [[nodiscard]] Field make(const Field& like, const std::vector<Box>& boxes) const;
  [[nodiscard]] bool zero_outside(const std::byte* values, const std::vector<Box>& boxes) const;
  [[nodiscard]] bool one_value(const std::byte* values) const;
  /// Calls visit(in the piece, in an array of the domain, bytes) for each row of a piece.
  template <class Visit>
  void each_row(const HostPiece& piece, const Box& within, const Visit& visit) const;
  void fill(std::byte* to, const std::byte* value, std::size_t bytes) const noexcept;

  Device device_;
  Extent extent_;
  std::size_t axis_;
  PartLayout like_;
  std::vector<Field> fields_;
};

}  // namespace headrace::grid
