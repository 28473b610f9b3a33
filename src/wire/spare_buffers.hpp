#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace headrace::wire {

/// Reuses the buffers of ended requests, for sizes for which a general allocator must search.
class SpareBuffers {
 public:
  SpareBuffers() { spare_.reserve(kMost); }

  /// An empty string, which has capacity if a buffer was spare.
  [[nodiscard]] std::string take() noexcept {
    if (spare_.empty()) return {};
    std::string one = std::move(spare_.back());
    spare_.pop_back();
    return one;
  }
  void give(std::string&& buffer) noexcept {
    if (buffer.capacity() < kLeastBytes || buffer.capacity() > kMostBytes || spare_.size() == kMost) return;
    buffer.clear();
    spare_.push_back(std::move(buffer));  // room is reserved
  }

 private:
  static constexpr std::size_t kMost = 256;
  static constexpr std::size_t kLeastBytes = 256;
  static constexpr std::size_t kMostBytes = 4 << 10;

  std::vector<std::string> spare_;
};

}  // namespace headrace::wire
