#include <cstdint>

// The first bytes of a shared object of a later version of Headrace. The file uses no header of this version.
extern "C" const void* headrace_operator() {
  static const struct {
    std::uint32_t abi = 9;
    std::uint32_t bytes = 4096;
    const char* version = "7.3.0";
    const char* commit = "fedcba9";
    const char* compiler = "GCC 19.1.0";
  } made;
  return &made;
}
