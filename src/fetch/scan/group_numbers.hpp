#pragma once

#include <cstdint>

#include "headrace/device/group.hpp"

namespace headrace::fetch {

/// A group number for each of a thread's rows, in two halves. The high halves are rarely anything but zero, and code
/// for 32 bits neither reads nor writes them.
template <std::uint32_t Rows>
class GroupNumbers {
 public:
  [[nodiscard]] HEADRACE_HD std::uint32_t low(std::uint32_t row) const noexcept { return low_[row]; }
  [[nodiscard]] HEADRACE_HD std::uint64_t operator[](std::uint32_t row) const noexcept {
    return std::uint64_t{high_[row]} << 32 | low_[row];
  }
  /// Sets a row whose old and new numbers both fit in 32 bits.
  HEADRACE_HD void set_low(std::uint32_t row, std::uint32_t number) noexcept { low_[row] = number; }
  HEADRACE_HD void set(std::uint32_t row, std::uint64_t number) noexcept {
    low_[row] = static_cast<std::uint32_t>(number);
    high_[row] = static_cast<std::uint32_t>(number >> 32);
  }

 private:
  std::uint32_t low_[Rows];
  std::uint32_t high_[Rows];
};

}  // namespace headrace::fetch
