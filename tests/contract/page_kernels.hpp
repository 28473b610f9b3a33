#pragma once

#include <cstdint>

#include "headrace/device/detail/page_heat.hpp"
#include "headrace/device/kernel.hpp"

/// Kernels for the tests of page heat, with the types of their arguments in order.
namespace headrace::testing {

/// (const std::byte* data, const std::uint32_t* pages, std::uint32_t count, PageCounter counter, std::uint64_t* sum):
/// reads the first word of each listed page, counts the access, and adds the words up in *sum.
[[nodiscard]] TypedKernel<const std::byte*, const std::uint32_t*, std::uint32_t, PageCounter, std::uint64_t*>
visit_pages_kernel();

/// (std::byte* data, std::uint32_t page_count): writes the page's number plus 1 into the first word of each page.
[[nodiscard]] TypedKernel<std::byte*, std::uint32_t> number_pages_kernel();

}  // namespace headrace::testing
