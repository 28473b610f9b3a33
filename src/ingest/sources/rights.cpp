#include "ingest/sources/rights.hpp"

#include <fmt/format.h>

#include <cerrno>

#include "headrace/base/error.hpp"

namespace headrace::ingest {

void throw_rights(std::string_view doing, std::string_view capability, int error_number) {
  if (error_number != EPERM && error_number != EACCES) throw_errno(doing, error_number);
  throw SystemError(Errc::no_permission,
                    fmt::format("{}: permission denied; this needs {}: run as root, or grant the capability to the "
                                "program (setcap) or to the container (--cap-add)",
                                doing, capability),
                    error_number);
}

}  // namespace headrace::ingest
