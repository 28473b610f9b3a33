#pragma once

#include <cstdint>

#include "headrace/device/group.hpp"

namespace headrace::fetch {

/// What a scan does with 32-bit words of its block's memory, among the threads of the block, and how it asks for memory
/// of the device that it will read. None of it orders anything. For CUDA see block_memory.cuh.
template <class Group>
struct BlockMemory {
  [[nodiscard]] HEADRACE_HD static std::uint32_t load(const Group& group, const std::uint32_t& word) noexcept {
    return group.load_relaxed(word);
  }
  /// Gives the value before; so does exchange(), which writes where the word holds `expected`.
  HEADRACE_HD static std::uint32_t add(const Group& group, std::uint32_t& word, std::uint32_t value) noexcept {
    return group.fetch_add_relaxed_on_device(word, value);
  }
  HEADRACE_HD static std::uint32_t exchange(const Group& group, std::uint32_t& word, std::uint32_t expected,
                                            std::uint32_t value) noexcept {
    return group.compare_exchange_relaxed_on_device(word, expected, value);
  }
  /// A value of at most 16 bytes, at a multiple of its size, that nobody writes while the scan runs.
  template <class T>
  [[nodiscard]] HEADRACE_HD static T read(const T* from) noexcept {
    return *from;
  }
  /// The same of what says where columns are: it is to stay in a cache through which the columns pass.
  template <class T>
  [[nodiscard]] HEADRACE_HD static T read_kept(const T* from) noexcept {
    return *from;
  }
};

}  // namespace headrace::fetch
