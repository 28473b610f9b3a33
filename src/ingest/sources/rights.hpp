#pragma once

#include <cerrno>
#include <string_view>

namespace headrace::ingest {

/// Throws a SystemError of `error_number` that reads "<doing>: ...". If permission is missing, it names the capability
/// and how to get it.
/// @param capability  e.g. "CAP_NET_ADMIN"
[[noreturn]] void throw_rights(std::string_view doing, std::string_view capability, int error_number = errno);

}  // namespace headrace::ingest
