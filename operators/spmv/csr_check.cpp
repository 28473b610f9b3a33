#include "operators/spmv/csr_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "headrace/base/error.hpp"
#include "operators/parallel.hpp"

namespace headrace::operators {

namespace {

constexpr std::uint64_t kLeastPerThread = 1 << 16;
constexpr std::uint64_t kNone = std::numeric_limits<std::uint64_t>::max();

/// The first wrong index in 0..count, or kNone. Several threads search for it.
template <class IsWrong>
[[nodiscard]] std::uint64_t first_wrong(std::uint64_t count, const IsWrong& is_wrong) {
  const std::uint32_t threads = thread_count(count, kLeastPerThread);
  std::vector<std::uint64_t> found(threads, kNone);
  in_parallel(threads, [&](std::uint32_t number) {
    const Part part(count, number, threads);
    for (std::uint64_t i = part.begin; i < part.end; ++i) {
      if (is_wrong(i)) {
        found[number] = i;
        return;
      }
    }
  });
  return *std::min_element(found.begin(), found.end());
}

template <class Value, class Column>
void require_sizes(const HostCsr<Value, Column>& matrix) {
  if (matrix.row_starts.size() == 0 || matrix.row_starts.size() - 1 != matrix.row_count) {
    throw UsageError(fmt::format("a matrix of {} rows needs {} row pointers (indptr), not {}", matrix.row_count,
                                 matrix.row_count + 1, matrix.row_starts.size()));
  }
  if (matrix.columns.size() != matrix.values.size()) {
    throw UsageError(
        fmt::format("each entry needs a column and a value, but there are {} columns (indices) and {} values (data)",
                    matrix.columns.size(), matrix.values.size()));
  }
  constexpr std::uint64_t kColumnsMax = std::uint64_t{1} << 32;
  if (matrix.column_count > kColumnsMax) {
    throw UsageError(
        fmt::format("{} columns are more than the {} that a matrix may have", matrix.column_count, kColumnsMax));
  }
}

}  // namespace

template <class Value, class Column>
void require_csr(const HostCsr<Value, Column>& matrix) {
  require_sizes(matrix);
  const auto starts = matrix.row_starts;
  if (starts.front() != 0)
    throw UsageError(fmt::format("row pointers (indptr) must start with 0, not {}", starts.front()));
  const std::uint64_t row =
      first_wrong(matrix.row_count, [starts](std::uint64_t r) { return starts[r + 1] < starts[r]; });
  if (row != kNone) {
    throw UsageError(
        fmt::format("row {}: row pointers (indptr) fall from {} to {}", row, starts[row], starts[row + 1]));
  }
  if (static_cast<std::uint64_t>(starts.back()) != matrix.columns.size()) {
    throw UsageError(fmt::format("row pointers (indptr) end with {}, but there are {} entries", starts.back(),
                                 matrix.columns.size()));
  }
  // As an unsigned number, a negative column exceeds any matrix.
  const std::uint64_t entry = first_wrong(matrix.columns.size(), [&matrix](std::uint64_t i) {
    return static_cast<std::uint64_t>(std::int64_t{matrix.columns[i]}) >= matrix.column_count;
  });
  if (entry != kNone) {
    const auto after = std::upper_bound(starts.begin(), starts.end(), static_cast<std::int64_t>(entry));
    throw UsageError(fmt::format("entry {} (row {}): column {} is outside the {} columns", entry,
                                 after - starts.begin() - 1, matrix.columns[entry], matrix.column_count));
  }
}

template void require_csr(const HostCsr<float, std::int32_t>&);
template void require_csr(const HostCsr<float, std::int64_t>&);
template void require_csr(const HostCsr<double, std::int32_t>&);
template void require_csr(const HostCsr<double, std::int64_t>&);

}  // namespace headrace::operators
