#pragma once

#include <cstdint>

#include "headrace/device/group.hpp"
#include "headrace/operators/detail/retrieval_query.hpp"

/// An index in the format of the retrieval operator.
namespace headrace::operators::boolean {

/// The unit of one load: 4 ids of a list, or the bits of 128 documents.
struct alignas(16) Vector {
  static constexpr std::uint32_t kWords = 4;
  static constexpr std::uint32_t kBits = 128;
  std::uint32_t word[kWords];
};

/// The documents of a term. Every term has a list; a frequent term also has a bitmap over all documents.
struct TermEntry {
  std::uint32_t list;    ///< Index of its first vector in `lists`: ascending ids, padded with kNoDocument.
  std::uint32_t count;   ///< Number of documents with the term.
  std::uint32_t bitmap;  ///< Index of its bitmap; 0, which is empty, if it has none.
  std::uint32_t reserved;
};
static_assert(sizeof(TermEntry) == 16);

/// The pointers refer to device memory.
struct Postings {
  const TermEntry* entries;
  const Vector* lists;
  const Vector* bitmaps;
  std::uint32_t bitmap_vectors;  ///< Distance between bitmaps.
  std::uint32_t term_count;
  std::uint32_t document_count;
};

/// Bitmaps are padded to a multiple of this many vectors, so that a CPU thread may always read as many as it takes at
/// once.
inline constexpr std::uint32_t kBitmapPad = 16;

/// A term in more than one of this many documents has a bitmap, which takes at most 32 times the memory of its list.
/// Testing a bitmap takes one read; testing a list takes a search with dependent reads.
inline constexpr std::uint32_t kBitmapShare = 1024;

[[nodiscard]] HEADRACE_HD constexpr bool has_bitmap(std::uint32_t count, std::uint32_t document_count) {
  return std::uint64_t{count} * kBitmapShare > document_count;
}

/// Bit `i` if the condition holds, else 0.
[[nodiscard]] HEADRACE_HD constexpr std::uint32_t bit_if(bool condition, std::uint32_t i) {
  return condition ? 1U << i : 0;
}

/// Documents that a thread tests at once, so that as many reads are in flight.
inline constexpr std::uint32_t kTestsAtOnce = 4;
static_assert(kTestsAtOnce == Vector::kWords);

[[nodiscard]] HEADRACE_HD inline const Vector* bitmap_of(const Postings& postings, const TermEntry& entry) {
  return postings.bitmaps + std::uint64_t{entry.bitmap} * postings.bitmap_vectors;
}

/// The words of consecutive vectors; Vector::word itself ends after four.
[[nodiscard]] HEADRACE_HD inline const std::uint32_t* words_of(const Vector* vectors) {
  return reinterpret_cast<const std::uint32_t*>(vectors);
}

/// Tests documents against the term's bitmap, with a bit for each. Tests only those whose bit in `asked` is set; they
/// must be below document_count.
[[nodiscard]] HEADRACE_HD inline std::uint32_t test_bitmap(const Postings& postings, const TermEntry& entry,
                                                           const Vector& ids, std::uint32_t asked) {
  const std::uint32_t* const words = words_of(bitmap_of(postings, entry));
  std::uint32_t found[kTestsAtOnce];
  for (std::uint32_t i = 0; i < kTestsAtOnce; ++i) found[i] = (asked >> i & 1U) != 0 ? words[ids.word[i] / 32] : 0;
  std::uint32_t present = 0;
  for (std::uint32_t i = 0; i < kTestsAtOnce; ++i) present |= bit_if((found[i] >> (ids.word[i] % 32) & 1U) != 0, i);
  return present;
}

/// The same by binary search in the term's list, for any ids. The four searches run in parallel, without branches.
[[nodiscard]] HEADRACE_HD inline std::uint32_t test_list(const Postings& postings, const TermEntry& entry,
                                                         const Vector& ids) {
  if (entry.count == 0) return 0;
  const std::uint32_t* const list = words_of(postings.lists + entry.list);
  std::uint32_t at[kTestsAtOnce] = {};
  for (std::uint32_t length = entry.count; length > 1;) {
    const std::uint32_t half = length / 2;
    for (std::uint32_t i = 0; i < kTestsAtOnce; ++i) {
      const std::uint32_t next = at[i] + half;
      at[i] = list[next] <= ids.word[i] ? next : at[i];
    }
    length -= half;
  }
  std::uint32_t present = 0;
  for (std::uint32_t i = 0; i < kTestsAtOnce; ++i) present |= bit_if(list[at[i]] == ids.word[i], i);
  return present;
}

[[nodiscard]] HEADRACE_HD inline std::uint32_t test_term(const Postings& postings, const TermEntry& entry,
                                                         const Vector& ids, std::uint32_t asked) {
  return (entry.bitmap != 0 ? test_bitmap(postings, entry, ids, asked) : test_list(postings, entry, ids)) & asked;
}

}  // namespace headrace::operators::boolean
