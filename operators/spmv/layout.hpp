#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "headrace/device/placement.hpp"
#include "operators/spmv/spmv.hpp"

/// Divides a matrix: rows over devices, entries over blocks, pages over places.
namespace headrace::operators {

/// The first row of each of `parts` parts, and the total number of rows. A row counts as one entry more than it has,
/// because even an empty row costs work.
[[nodiscard]] std::vector<std::uint64_t> cut_rows(std::span<const std::int64_t> row_starts, std::size_t parts);

/// Applies the cut of the rows, in proportion, to a vector of `count` elements.
[[nodiscard]] std::vector<std::uint64_t> scale_cut(const std::vector<std::uint64_t>& rows, std::uint64_t count);

/// A place for each page of a vector of values of `value_bytes`: that of the part with most of its elements.
[[nodiscard]] std::vector<Place> vector_pages(const std::vector<std::uint64_t>& cut, std::size_t value_bytes,
                                              const std::vector<Device>& devices);

/// The work of one part, in the format of its kernel.
struct PartWork {
  std::vector<SpmvChunk> chunks;
  std::vector<SpmvLongRow> long_rows;
  std::vector<std::uint16_t> row_starts;
  std::uint64_t partials = 0;
};

/// Cuts rows `first` to `last` into chunks. Throws UsageError if there are 2^32 rows or chunks.
[[nodiscard]] PartWork cut_work(std::span<const std::int64_t> row_starts, std::uint64_t first, std::uint64_t last);

/// Offsets of a part's arrays, in bytes from its first page; each is 256-byte aligned.
struct PartLayout {
  std::size_t chunks = 0;
  std::size_t long_rows = 0;
  std::size_t row_starts = 0;
  std::size_t columns = 0;
  std::size_t values = 0;
  std::size_t partials = 0;
  std::size_t x_copy = 0;
  std::size_t bytes = 0;
  std::size_t pages = 0;
};

[[nodiscard]] PartLayout lay_out(const PartWork& work, std::uint64_t entries, std::uint64_t copied_count,
                                 std::size_t value_bytes);

}  // namespace headrace::operators
