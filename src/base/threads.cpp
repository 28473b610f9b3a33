#include "headrace/base/detail/threads.hpp"

#include <fmt/format.h>
#include <sys/resource.h>

#include "headrace/base/error.hpp"

namespace headrace {

std::string thread_limits() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NPROC, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) {
    return "raise the container's pids limit";
  }
  return fmt::format("raise the limit on processes (ulimit -u, {} here) or the container's pids limit", limit.rlim_cur);
}

void throw_no_thread(std::string_view what, std::size_t started, std::size_t wanted, int error_number) {
  throw SystemError(Errc::system,
                    fmt::format("only {} of {} {} could start ({}): {}, or ask for fewer threads", started, wanted,
                                what, std::generic_category().message(error_number), thread_limits()),
                    error_number);
}

}  // namespace headrace
