#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace headrace::wire {

/// Buffers of requests that have ended, for the next ones: of those sizes that a general allocator searches for.
class SpareBuffers {
 public:
  SpareBuffers() { spare_.reserve(kMost); }

  /// Empty, with room where there is a spare one.
  [[nodiscard]] std::string take() noexcept {
    if (spare_.empty()) return {};
    std::string one = std::move(spare_.back());
    spare_.pop_back();
    return one;
  }
  void give(std::string&& buffer) noexcept {
    if (buffer.capacity() < kLeastBytes || buffer.capacity() > kMostBytes || spare_.size() == kMost) return;
    buffer.clear();
    spare_.push_back(std::move(buffer));  // there is room, reserved
  }

 private:
  static constexpr std::size_t kMost = 256;
  static constexpr std::size_t kLeastBytes = 256;
  static constexpr std::size_t kMostBytes = 4 << 10;

  std::vector<std::string> spare_;
};

}  // namespace headrace::wire
