#pragma once

#include <string>

#include "headrace/operators/detail/library_abi.hpp"

namespace headrace::operators {

/// Throws UsageError where a shared object was compiled for another ABI or version of Headrace, and DataError where it
/// says what no operator can be. Messages name `path`.
void require_matching(const OperatorLibrary& library, const std::string& path);

/// Fields as a NumPy type that headrace/dtypes.py reads; empty where there are none. `what` is "query" or "answer".
/// Throws DataError for a field that is none, or lies outside the `bytes` bytes.
[[nodiscard]] std::string numpy_type(const Field* fields, std::uint32_t count, std::uint64_t bytes, const char* what,
                                     const std::string& path);

}  // namespace headrace::operators
