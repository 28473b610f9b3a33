#include "operators/retrieval/device_image.hpp"

#include <cstring>
#include <limits>

#include "headrace/base/detail/bytes.hpp"
#include "headrace/base/error.hpp"
#include "operators/parallel.hpp"

namespace headrace::operators {

namespace {

using boolean::TermEntry;
using boolean::Vector;

constexpr std::uint64_t kCopiedPostingsAThread = 1U << 20;

std::uint32_t bitmap_vectors(std::uint32_t document_count) noexcept {
  const std::uint64_t needed = (std::uint64_t{document_count} + Vector::kBits - 1) / Vector::kBits;
  return static_cast<std::uint32_t>(align_up(needed, boolean::kBitmapPad));
}

/// Assigns a position to each part of the image, and allocates its memory.
void lay_out(const Index& index, DeviceImage& image) {
  image.entries.reserve(index.term_count());
  std::uint64_t lists = 0;
  std::uint32_t bitmaps = 1;
  for (std::uint32_t term = 0; term < index.term_count(); ++term) {
    const auto count = static_cast<std::uint32_t>(index.postings(term).size());
    const bool frequent = boolean::has_bitmap(count, index.document_count());
    image.entries.push_back({static_cast<std::uint32_t>(lists), count, frequent ? bitmaps++ : 0, 0});
    lists += (std::uint64_t{count} + Vector::kWords - 1) / Vector::kWords;
    if (lists > std::numeric_limits<std::uint32_t>::max()) {
      throw DataError("the retrieval operator takes at most 64 GiB of posting lists");
    }
  }
  image.lists.resize(lists);
  image.bitmaps.resize(std::size_t{bitmaps} * bitmap_vectors(index.document_count()));
}

void write_list(std::span<const std::uint32_t> ids, Vector* to) {
  auto* const words = reinterpret_cast<std::uint32_t*>(to);
  std::memcpy(words, ids.data(), ids.size_bytes());
  for (std::size_t i = ids.size(); i % Vector::kWords != 0; ++i) words[i] = kNoDocument;
}

void write_bitmap(std::span<const std::uint32_t> ids, Vector* to) {
  auto* const words = reinterpret_cast<std::uint32_t*>(to);
  for (const std::uint32_t id : ids) words[id / 32] |= 1U << (id % 32);
}

}  // namespace

DeviceImage make_device_image(const Index& index) {
  DeviceImage image;
  lay_out(index, image);
  const std::size_t stride = bitmap_vectors(index.document_count());
  const std::uint32_t threads = thread_count(index.posting_count(), kCopiedPostingsAThread);
  in_parallel(threads, [&](std::uint32_t thread) {
    // Threads take terms in turn, because frequent terms may be neighbours.
    for (std::uint32_t term = thread; term < index.term_count(); term += threads) {
      const TermEntry& entry = image.entries[term];
      write_list(index.postings(term), image.lists.data() + entry.list);
      if (entry.bitmap != 0) write_bitmap(index.postings(term), image.bitmaps.data() + entry.bitmap * stride);
    }
  });
  return image;
}

boolean::Postings make_postings(const Index& index, const void* entries, const void* lists,
                                const void* bitmaps) noexcept {
  return {static_cast<const TermEntry*>(entries),
          static_cast<const Vector*>(lists),
          static_cast<const Vector*>(bitmaps),
          bitmap_vectors(index.document_count()),
          index.term_count(),
          index.document_count()};
}

}  // namespace headrace::operators
