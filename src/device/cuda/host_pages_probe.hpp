#pragma once

#include <string>

namespace headrace::detail::cuda {

/// Why a device cannot use host pages; empty if it can. Tests this in another process, because creating the first host
/// page has crashed some drivers; see docs/decisions/0010-host-pages-are-tried-in-another-process.md.
/// HEADRACE_HOST_PAGES=yes or no in the environment is believed without a test; a path names the program that tests.
[[nodiscard]] std::string host_pages_absence(int ordinal, int numa_node);

}  // namespace headrace::detail::cuda
