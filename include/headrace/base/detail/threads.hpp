#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <system_error>

namespace headrace {

/// What to do if the system refuses a thread: "raise the limit on processes (ulimit -u, 20 here) or ...".
[[nodiscard]] std::string thread_limits();

/// Throws SystemError (Errc::system, with `error_number`) that tells how many threads of `what` have started, how many
/// were wanted, and which limits apply.
/// @param what  the threads, in the plural, e.g. "generator threads"
[[noreturn]] void throw_no_thread(std::string_view what, std::size_t started, std::size_t wanted, int error_number);

/// Calls start(i), which starts one thread, for i from 0 to count - 1. If the system refuses one, throws as
/// throw_no_thread() does. The owner of the started threads must end them.
template <class Start>
void start_each(std::string_view what, std::size_t count, Start start) {
  for (std::size_t i = 0; i < count; ++i) {
    try {
      start(i);
    } catch (const std::system_error& error) {
      throw_no_thread(what, i, count, error.code().value());
    }
  }
}

}  // namespace headrace
