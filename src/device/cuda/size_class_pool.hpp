#pragma once

#include <array>
#include <cstddef>
#include <mutex>
#include <vector>

#include "headrace/base/result.hpp"

namespace headrace::detail::cuda {

/// Device memory kept by size class: a released block waits for the next request of its class, without a driver call.
/// Classes are an eighth of a power of two apart, so at most an eighth of a block is unused. The caller has made the
/// device current.
class SizeClassPool {
 public:
  SizeClassPool() noexcept = default;

  [[nodiscard]] Result<void*> take(std::size_t bytes) noexcept;
  /// @param bytes  as passed to take().
  void give(void* data, std::size_t bytes) noexcept;
  /// Returns every free block to the driver.
  void trim() noexcept;

  /// The size that a request is rounded up to.
  [[nodiscard]] static std::size_t rounded(std::size_t bytes) noexcept;

 private:
  static constexpr std::size_t kStepsLog2 = 3;
  static constexpr std::size_t kSmallestLog2 = 8;  ///< 256 bytes: the alignment that every Buffer has.
  static constexpr std::size_t kClassCount = (64 - kSmallestLog2) << kStepsLog2;

  [[nodiscard]] static std::size_t index(std::size_t rounded_bytes) noexcept;

  std::mutex mutex_;
  std::array<std::vector<void*>, kClassCount> free_;
};

}  // namespace headrace::detail::cuda
