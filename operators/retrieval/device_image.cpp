#include "operators/retrieval/device_image.hpp"

#include <cstring>

#include "headrace/base/bytes.hpp"

namespace headrace::operators {

namespace {

constexpr std::size_t kIdsPerWord = sizeof(std::uint64_t) / sizeof(std::uint32_t);

std::size_t bitmap_words(std::uint32_t document_count) noexcept {
  return align_up((std::size_t{document_count} + 63) / 64, boolean::kBitmapPad);
}

/// The 64-bit words that a term takes: lists start at whole ones.
std::size_t words_of(std::uint32_t count, std::uint32_t document_count) noexcept {
  if (boolean::has_bitmap(count, document_count)) return bitmap_words(document_count);
  return (std::size_t{count} + kIdsPerWord - 1) / kIdsPerWord;
}

}  // namespace

DeviceImage make_device_image(const Index& index) {
  DeviceImage image;
  image.entries.reserve(index.term_count());
  std::size_t total = 0;
  for (std::uint32_t term = 0; term < index.term_count(); ++term) {
    const auto count = static_cast<std::uint32_t>(index.postings(term).size());
    const bool bitmap = boolean::has_bitmap(count, index.document_count());
    image.entries.push_back({total * kIdsPerWord, count, bitmap ? 1U : 0U});
    total += words_of(count, index.document_count());
  }
  image.words.resize(total);
  for (std::uint32_t term = 0; term < index.term_count(); ++term) {
    const auto& entry = image.entries[term];
    const auto ids = index.postings(term);
    std::uint64_t* const to = image.words.data() + entry.begin / kIdsPerWord;
    if (entry.bitmap == 0) {
      std::memcpy(to, ids.data(), ids.size_bytes());
    } else {
      for (const std::uint32_t id : ids) to[id / 64] |= std::uint64_t{1} << (id % 64);
    }
  }
  return image;
}

boolean::Postings make_postings(const Index& index, const void* entries, const void* words) noexcept {
  return {static_cast<const boolean::TermEntry*>(entries), static_cast<const std::uint32_t*>(words), index.term_count(),
          index.document_count()};
}

}  // namespace headrace::operators
