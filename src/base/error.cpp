#include "headrace/base/error.hpp"

#include <fmt/format.h>

#include <system_error>

#include "headrace/base/detail/process.hpp"
#include "headrace/base/detail/threads.hpp"

namespace headrace {

std::string_view to_string(Errc code) noexcept {
  switch (code) {
    case Errc::invalid_argument: return "invalid argument";
    case Errc::not_supported: return "not supported";
    case Errc::not_found: return "not found";
    case Errc::out_of_memory: return "out of memory";
    case Errc::no_permission: return "no permission";
    case Errc::corrupt_data: return "corrupt data";
    case Errc::device_fault: return "device fault";
    case Errc::system: return "system error";
    case Errc::full: return "full";
    case Errc::cancelled: return "cancelled";
    case Errc::deadline_exceeded: return "deadline exceeded";
    case Errc::stopped: return "stopped";
    case Errc::hung: return "hung operator";
  }
  return "unknown error";
}

void throw_errno(std::string_view doing, int error_number) {
  Errc code = Errc::system;
  if (error_number == ENOMEM) code = Errc::out_of_memory;
  if (error_number == ENOENT) code = Errc::not_found;
  if (error_number == EACCES || error_number == EPERM) code = Errc::no_permission;
  throw SystemError(code, fmt::format("{}: {}", doing, std::generic_category().message(error_number)), error_number);
}

void throw_error(std::string_view doing, Error error) {
  if (error == kInherited) {
    throw Exception(
        error.code,
        fmt::format(
            "{}: the object was made before fork(), and its threads and CUDA contexts belong to the parent process; "
            "make a new one in this process (for CUDA, in a process that is spawned instead of forked)",
            doing),
        error.native);
  }
  // pthread_create(3): a limit on the number of threads was reached.
  if (error.code == Errc::system && error.native == EAGAIN) {
    throw SystemError(error.code, fmt::format("{}: no thread could start: {}", doing, thread_limits()), error.native);
  }
  if (error.code == Errc::system && error.native != 0) throw_errno(doing, error.native);
  const auto message = error.native == 0
                           ? fmt::format("{}: {}", doing, to_string(error.code))
                           : fmt::format("{}: {} (native code {})", doing, to_string(error.code), error.native);
  switch (error.code) {
    case Errc::invalid_argument:
    case Errc::not_found: throw UsageError(message, error.code);
    case Errc::corrupt_data: throw DataError(message);
    case Errc::system:
    case Errc::no_permission: throw SystemError(error.code, message, error.native);
    case Errc::not_supported:
    case Errc::out_of_memory:
    case Errc::device_fault:
    case Errc::hung: throw DeviceError(error.code, message, error.native);
    default: throw Exception(error.code, message, error.native);
  }
}

}  // namespace headrace
