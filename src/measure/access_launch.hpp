#pragma once

#include <cstdint>

#include "headrace/device/detail/access.hpp"
#include "headrace/device/kernel.hpp"
#include "measure/access_kernels.hpp"

/// The kernels of the access patterns, and kernels that fill data, count draws and verify results. The verifying
/// kernels share only the draws with the verified ones.
namespace headrace::measure {

/// The kernel of a sweep: grid_stride, block_stride or hot_tenth. Arguments: AccessData.
[[nodiscard]] TypedKernel<AccessData> sweep_kernel(AccessPattern pattern, AccessOperation operation);
/// Arguments: AccessData, RandomRegions.
[[nodiscard]] TypedKernel<AccessData, RandomRegions> random_warp_kernel(AccessOperation operation);
/// Arguments: AccessData, ZipfRows.
[[nodiscard]] TypedKernel<AccessData, ZipfRows> zipf_kernel(AccessOperation operation);

/// Writes filled() to every unit. Arguments: AccessData.
[[nodiscard]] TypedKernel<AccessData> fill_access_kernel();

/// The sum of the words of filled() in a range of pages, computed only from the indices. Arguments: AccessData (sums),
/// page range (first page, count).
[[nodiscard]] TypedKernel<AccessData, std::uint64_t, std::uint64_t> expect_pages_kernel();
/// The same for all drawn rows, as often as they are drawn. Arguments: AccessData (sums), ZipfRows.
[[nodiscard]] TypedKernel<AccessData, ZipfRows> expect_drawn_kernel();

/// Counts of what the draws touch.
struct DrawCounts {
  std::uint32_t* pages = nullptr;  ///< Draws of each page of `page_bytes`.
  std::uint64_t page_rows = 1;     ///< Rows per such page.
  std::uint8_t* rows = nullptr;    ///< 1 for each row that is drawn at least once.
};
/// Adds to the counts. Arguments: DrawCounts, ZipfRows.
[[nodiscard]] TypedKernel<DrawCounts, ZipfRows> count_kernel();

/// The expected contents of each word.
struct ExpectedWords {
  AccessOperation operation = AccessOperation::read;
  std::uint32_t run = 0;
  const std::uint8_t* rows = nullptr;  ///< Rows that were touched; null for all.
};
/// Counts the units with other contents, in AccessData::sums. Arguments: AccessData, ExpectedWords.
[[nodiscard]] TypedKernel<AccessData, ExpectedWords> check_kernel();

}  // namespace headrace::measure
