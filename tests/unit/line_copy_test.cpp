#include "headrace/base/detail/line_copy.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <vector>

namespace headrace {
namespace {

TEST(LineCopy, CopiesEveryLengthFromEveryOffsetAndNothingMore) {
  constexpr std::byte kUntouched{0xEE};
  constexpr std::size_t kMost = 3 * kLineBytes;
  struct alignas(kLineBytes) Slot {
    std::byte bytes[kMost + kLineBytes];
  };
  std::vector<std::byte> from(kMost + kLineBytes);
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::byte>(i * 7 + 1);
  for (std::size_t offset = 0; offset < kLineBytes; offset += 5) {
    for (std::size_t bytes = 0; bytes <= kMost; ++bytes) {
      Slot slot;
      std::fill(std::begin(slot.bytes), std::end(slot.bytes), kUntouched);
      copy_lines(slot.bytes, from.data() + offset, bytes);
      for (std::size_t i = 0; i < sizeof(slot.bytes); ++i) {
        ASSERT_EQ(slot.bytes[i], i < bytes ? from[offset + i] : kUntouched) << offset << ", " << bytes << ", " << i;
      }
    }
  }
}

}  // namespace
}  // namespace headrace
