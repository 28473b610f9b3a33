#pragma once

#include <algorithm>
#include <random>
#include <vector>

#include "headrace/base/detail/bytes.hpp"
#include "headrace/device/copy_batch.hpp"
#include "tests/contract/devices.hpp"

namespace headrace::testing {

/// Gives a CopyBatch copies of random places and lengths, with new sources each time.
class Sender {
 public:
  Sender(StreamRef stream, std::uint64_t seed)
      : random_(seed),
        stream_(stream),
        source_(stream.device(), MemoryKind::pinned, kExtent),
        target_(stream.device(), MemoryKind::device, kExtent),
        back_(stream.device(), MemoryKind::pinned, kExtent),
        expected_(kExtent) {
    EXPECT_OK(stream_.fill(target_.data(), 0, kExtent));
    EXPECT_OK(stream_.wait());
  }

  /// Adds `count` copies of 1 to `longest` bytes.
  void add(CopyBatch& batch, std::size_t count, std::size_t longest) {
    for (std::size_t i = 0; i < kExtent; i += sizeof(std::uint64_t)) {
      const std::uint64_t word = random_();
      std::memcpy(source_.data() + i, &word, sizeof(word));
    }
    // Each has its own room, so that copies do not overlap.
    const std::size_t room = kExtent / count;
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t bytes = 1 + random_() % std::min(longest, room - 16);
      const std::size_t to = i * room + random_() % (room - bytes);
      const std::size_t from = random_() % (kExtent - bytes);
      std::memcpy(expected_.data() + to, source_.data() + from, bytes);
      ASSERT_OK(batch.add(target_.data() + to, source_.data() + from, bytes));
    }
  }

  /// Whether every byte of the target is as expected.
  [[nodiscard]] bool arrived() {
    EXPECT_OK(stream_.copy(back_.data(), target_.data(), kExtent));
    EXPECT_OK(stream_.wait());
    return content(back_) == expected_;
  }

 private:
  static constexpr std::size_t kExtent = 256 * kKiB;

  std::mt19937_64 random_;
  StreamRef stream_;
  Buffer source_;
  Buffer target_;
  Buffer back_;
  std::vector<std::byte> expected_;
};

}  // namespace headrace::testing
