#include "ingest/stream_bytes.hpp"

#include <algorithm>
#include <cstring>

#include "ingest/random.hpp"

namespace headrace::ingest {

StreamBytes::StreamBytes(std::uint64_t seed) noexcept : seed_(seed) {
  Random random(seed);
  for (std::uint64_t& word : table_) word = random.next();
}

std::uint64_t StreamBytes::word(std::uint64_t index) const noexcept {
  return table_[index % kWords] ^ mix64(seed_ + index / kWords);
}

void StreamBytes::fill(std::uint64_t offset, std::span<std::byte> to) const noexcept {
  constexpr std::size_t kWord = sizeof(std::uint64_t);
  while (!to.empty()) {
    const std::uint64_t index = offset / kWord;
    const std::size_t within = offset % kWord;
    std::size_t bytes = std::min(kWord - within, to.size());
    if (within != 0 || to.size() < kWord) {
      const std::uint64_t one = word(index);
      std::memcpy(to.data(), reinterpret_cast<const std::byte*>(&one) + within, bytes);
    } else {
      const std::size_t first = index % kWords;
      const std::size_t words = std::min(to.size() / kWord, kWords - first);
      const std::uint64_t key = mix64(seed_ + index / kWords);
      for (std::size_t i = 0; i < words; ++i) {
        const std::uint64_t one = table_[first + i] ^ key;
        std::memcpy(to.data() + i * kWord, &one, kWord);
      }
      bytes = words * kWord;
    }
    offset += bytes;
    to = to.subspan(bytes);
  }
}

}  // namespace headrace::ingest
