#pragma once

#include <string>

namespace headrace::detail::cuda {

/// Why host pages cannot be had for a device; empty when they can. Tries it in another process, because the first host
/// page has crashed inside some drivers; see docs/decisions/0010-host-pages-are-tried-in-another-process.md.
/// HEADRACE_HOST_PAGES=yes or no in the environment is believed without trying; a path names the program that tries.
[[nodiscard]] std::string host_pages_absence(int ordinal, int numa_node);

}  // namespace headrace::detail::cuda
