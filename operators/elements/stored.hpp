#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "headrace/device/device.hpp"
#include "headrace/operators/detail/elements.hpp"
#include "operators/parallel.hpp"

namespace headrace::operators {

/// A matrix in host memory, in the format that kernels read.
class StoredElements {
 public:
  /// Allocates `count` elements, all 0.
  StoredElements(ElementType type, std::size_t count);

  /// Writes an element. Returns whether it is finite as stored.
  [[nodiscard]] bool set(std::size_t index, float value) noexcept;
  [[nodiscard]] std::span<const std::byte> bytes() const noexcept;
  [[nodiscard]] ElementType type() const noexcept { return type_; }

 private:
  struct alignas(64) Line {
    std::byte bytes[64];
  };

  ElementType type_;
  std::size_t bytes_;
  std::vector<Line> lines_;
};

/// Allocates `rows` rows of `columns` columns, stored in `elements` elements, all 0. Throws SystemError
/// (Errc::out_of_memory) that says how many bytes operator `name` needs.
[[nodiscard]] StoredElements room_for_rows(std::string_view name, std::uint64_t rows, std::uint32_t columns,
                                           ElementType type, std::uint64_t elements);

/// Element number `index` of an array in host memory.
[[nodiscard]] float element_at(const void* data, ElementType type, std::uint64_t index) noexcept;

/// A table in host memory, row after row.
struct HostTable {
  const void* data;
  ElementType element;
  std::uint64_t rows;
  std::uint32_t columns;
};

/// An element that is not finite as stored.
struct NotFinite {
  std::uint64_t row;
  std::uint32_t column;
  float value;
};

/// Writes each element of a table to number `place(row, column)` of `to`, with several threads if the table is large.
/// Returns the first element, by row and then by column, that is not finite; the stored contents are then unspecified.
template <class Place>
[[nodiscard]] std::optional<NotFinite> store_table(const HostTable& table, StoredElements& to, const Place& place) {
  constexpr std::uint64_t kLeast = std::uint64_t{1} << 20;  // elements that justify a thread
  const std::uint32_t threads = thread_count(table.rows * table.columns, kLeast);
  std::vector<std::optional<NotFinite>> found(threads);
  in_parallel(threads, [&](std::uint32_t thread) {
    const Part part(table.rows, thread, threads);
    for (std::uint64_t row = part.begin; row < part.end; ++row) {
      for (std::uint32_t column = 0; column < table.columns; ++column) {
        const float value = element_at(table.data, table.element, row * table.columns + column);
        if (to.set(place(row, column), value)) continue;
        found[thread] = {row, column, value};
        return;
      }
    }
  });
  const auto first = std::ranges::find_if(found, [](const auto& one) { return one.has_value(); });
  return first == found.end() ? std::nullopt : *first;
}

/// Memory that a device reads for data of the host: the host memory itself if kernels run on the host, otherwise a
/// copy.
struct Placed {
  const std::byte* data = nullptr;
  std::shared_ptr<const void> owner = {};  ///< Keeps the copy; null without one.
};

/// Throws DeviceError if the device does not have enough memory.
/// @param doing  for errors
[[nodiscard]] Placed place_on(Device device, std::span<const std::byte> bytes, std::string_view doing);

/// The same, with at most `device_bytes` of it in GPU memory, in whole pages from the first byte on. The rest is in
/// page-locked host memory, which kernels read over the link.
[[nodiscard]] Placed place_within(Device device, std::span<const std::byte> bytes, std::size_t device_bytes,
                                  std::string_view doing);

/// Writes vector number `index` of a family of random float32 vectors, uniform in [-1, 1).
void random_vector(std::uint64_t index, std::byte* to, std::uint32_t count) noexcept;

}  // namespace headrace::operators
