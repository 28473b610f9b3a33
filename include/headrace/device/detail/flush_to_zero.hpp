#pragma once

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

namespace headrace::detail {

/// While it lives, this thread takes subnormal values as 0 and gives 0 where a result would be subnormal (below about
/// 1e-38 in float). A processor takes some hundred cycles for each of them otherwise. Does nothing on processors other
/// than x86.
class FlushToZero {
 public:
#if defined(__SSE2__)
  FlushToZero() noexcept : before_(_mm_getcsr()) { set(before_ | kFlush); }
  ~FlushToZero() { set(before_); }
#else
  FlushToZero() noexcept = default;
  ~FlushToZero() = default;
#endif
  FlushToZero(const FlushToZero&) = delete;
  FlushToZero& operator=(const FlushToZero&) = delete;

#if defined(__SSE2__)
 private:
  static constexpr unsigned kFlush = 0x8040;  // results (FTZ) and operands (DAZ)

  /// The compiler moves no access to memory across it, and so nothing that is computed from memory.
  static void set(unsigned state) noexcept {
    __asm__ volatile("" ::: "memory");
    _mm_setcsr(state);
    __asm__ volatile("" ::: "memory");
  }

  unsigned before_;
#endif
};

}  // namespace headrace::detail
