#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "grid/layout.hpp"
#include "headrace/device/buffer.hpp"
#include "headrace/device/device.hpp"
#include "headrace/grid/detail/box.hpp"

/// Keeps the fields of a domain that is larger than its device's memory in page-locked host memory.
namespace headrace::grid {

/// Contiguous cells of a field. Whole rows have the same layout as on the device, so that one copy moves many of them.
/// The rows of other boxes are packed without gaps.
struct HostPiece {
  Box box;
  bool whole_rows = false;      ///< Whether it covers all cells across the slabs' axis.
  std::int64_t pitch = 0;       ///< Distance between rows, in values.
  std::int64_t plane = 0;       ///< Distance between planes, in values.
  std::int64_t lead = 0;        ///< Values before the first cell.
  std::size_t slice_bytes = 0;  ///< Size of one step along the slabs' axis.
  std::byte* data = nullptr;    ///< Null until memory is allocated.
  [[nodiscard]] std::int64_t slices(std::size_t axis) const noexcept { return box.size(axis); }
};

/// Owns the values of all fields. A field with one value everywhere has no memory. Not safe for concurrent use.
class HostFields {
 public:
  /// @param like  the layout of cells on the device, for any number of rows along `axis`
  HostFields(Device device, const Extent& extent, std::size_t axis, const PartLayout& like, int field_count);

  /// Takes an array of the whole domain, or one value for all cells. `in_use` lists the cells that phases use; the
  /// others need no memory as long as they are 0. Throws as Buffer does.
  void set(int field, const std::byte* values, bool one_for_all, const std::vector<Box>& in_use);
  /// Copies a field into an array of the whole domain.
  void get(int field, std::byte* values) const;
  /// Allocates memory for these cells if they have none. Throws as Buffer does.
  void provide(int field, const std::vector<Box>& in_use);

  /// Whether the field has the same value everywhere, and no memory.
  [[nodiscard]] bool uniform(int field) const noexcept { return its(field).pieces.empty(); }
  /// The value of such a field.
  [[nodiscard]] const std::byte* value(int field) const noexcept { return its(field).value.data(); }
  [[nodiscard]] const std::vector<HostPiece>& pieces(int field) const noexcept { return its(field).pieces; }
  /// The pieces that provide() would make for these cells, without memory.
  [[nodiscard]] std::vector<HostPiece> pieces_of(const std::vector<Box>& boxes) const;
  /// Size of the page-locked memory of all fields.
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
  /// Calls visit(pointer in the piece, pointer in an array of the domain, bytes) for each row of a piece.
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
