#pragma once

#include <cxxabi.h>

namespace headrace {

/// Takes the memory that a thread needs for its first exception. To be called as the thread begins: where the first
/// exception is thrown because memory has ended, there is none for it either, and the C library ends the process.
inline void reserve_exception_memory() noexcept {
  // The function is declared without effects: a call whose result is not used would be left out.
  [[maybe_unused]] void* volatile taken = abi::__cxa_get_globals();
}

}  // namespace headrace
