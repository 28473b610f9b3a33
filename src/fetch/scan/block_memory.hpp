#pragma once

#include <cstdint>

#include "headrace/device/group.hpp"

namespace headrace::fetch {

/// How the threads of a block access 32-bit words of the block's memory, and how they load from device memory. All
/// accesses are relaxed. For CUDA see block_memory.cuh.
template <class Group>
struct BlockMemory {
  [[nodiscard]] HEADRACE_HD static std::uint32_t load(const Group& group, const std::uint32_t& word) noexcept {
    return group.load_relaxed(word);
  }
  /// Returns the previous value, as does exchange(), which writes only if the word holds `expected`.
  HEADRACE_HD static std::uint32_t add(const Group& group, std::uint32_t& word, std::uint32_t value) noexcept {
    return group.fetch_add_relaxed_on_device(word, value);
  }
  HEADRACE_HD static std::uint32_t exchange(const Group& group, std::uint32_t& word, std::uint32_t expected,
                                            std::uint32_t value) noexcept {
    return group.compare_exchange_relaxed_on_device(word, expected, value);
  }
  /// Loads an aligned value of at most 16 bytes that no thread writes while the scan runs.
  template <class T>
  [[nodiscard]] HEADRACE_HD static T read(const T* from) noexcept {
    return *from;
  }
  /// The same for the addresses of columns, which should stay in the cache while column data streams through it.
  template <class T>
  [[nodiscard]] HEADRACE_HD static T read_kept(const T* from) noexcept {
    return *from;
  }
};

}  // namespace headrace::fetch
