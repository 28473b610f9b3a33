#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace headrace::detail::cuda {

/// Which addresses kernels of one device reach. Remembers the last ranges that the driver named, because the copies of
/// a list mostly share a few buffers; so it must not outlive the list. The caller has made the device current.
class Reach {
 public:
  explicit Reach(int ordinal) noexcept : ordinal_(ordinal) {}

  /// True when a kernel may access all of [data, data + bytes). Memory that CUDA does not know, memory of other
  /// devices and ranges of several allocations count as out of reach.
  [[nodiscard]] bool covers(const void* data, std::size_t bytes) noexcept;

 private:
  struct Range {
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
    bool reachable = false;
  };

  [[nodiscard]] Range ask(std::uintptr_t address) const noexcept;

  int ordinal_;
  std::array<Range, 4> ranges_{};
  std::size_t oldest_ = 0;
};

}  // namespace headrace::detail::cuda
