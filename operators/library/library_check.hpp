#pragma once

#include <string>

#include "headrace/operators/detail/library_abi.hpp"

namespace headrace::operators {

/// Throws UsageError if a shared object was compiled for another ABI or version of Headrace, and DataError if it
/// declares an impossible operator. Messages name `path`.
void require_matching(const OperatorLibrary& library, const std::string& path);

/// Fields as a NumPy type that headrace/dtypes.py reads; empty without fields. `what` is "query" or "answer". Throws
/// DataError for a field that is invalid or lies outside the `bytes` bytes.
[[nodiscard]] std::string numpy_type(const Field* fields, std::uint32_t count, std::uint64_t bytes, const char* what,
                                     const std::string& path);

}  // namespace headrace::operators
