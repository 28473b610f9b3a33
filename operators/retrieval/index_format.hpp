#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>

#include "headrace/operators/detail/text_rules.hpp"
#include "headrace/operators/index.hpp"

/// The bytes of an index file, all little-endian:
///   IndexHeader     only the bytes that the version has
///   term begins     uint32 for each term and one more: its offset in the pool; it ends where the next one begins
///   pool            the terms, concatenated in ascending order of their bytes
///   posting begins  uint64 for each term and one more: the offset of its list in the postings
///   postings        uint32 document ids, each list strictly ascending
///   lengths         uint32 for each document: its number of terms, including repetitions
///   frequencies     uint16 for each posting: how often the document has the term, at most 65,535
///   checksum        XXH64 of everything before it
/// Sections start at multiples of 8 and are padded with zeros. The last two exist from version 3 on, and are empty in
/// an index without frequencies. Files with stemmed words have version 4, because older libraries do not support them;
/// others are still written as version 3. Files of version 5 are packed: packed_index.hpp.
namespace headrace::operators {

static_assert(std::endian::native == std::endian::little, "index files are mapped as they are");

struct IndexSection {
  std::uint64_t offset;  ///< From the start of the file.
  std::uint64_t bytes;   ///< Without padding.
};

// Indices of the sections.
inline constexpr std::size_t kTermBegins = 0;
inline constexpr std::size_t kPool = 1;
inline constexpr std::size_t kPostingBegins = 2;
inline constexpr std::size_t kPostings = 3;
inline constexpr std::size_t kLengths = 4;
inline constexpr std::size_t kFrequencies = 5;
inline constexpr std::size_t kSectionCount = 6;
inline constexpr std::size_t kFirstSections = 4;  ///< The sections of every version, which come before the rules.

struct IndexHeader {
  static constexpr std::array<char, 8> kMagic{'H', 'e', 'a', 'd', 'r', 'I', 'd', 'x'};

  std::array<char, 8> magic;
  std::uint32_t version;
  std::uint32_t header_bytes;
  std::uint64_t file_bytes;
  std::uint32_t document_count;
  std::uint32_t term_count;
  std::uint64_t posting_count;
  std::array<IndexSection, kFirstSections> first_sections;
  std::uint8_t words;                  ///< TextRules::Words, from version 2 on. Earlier files have words of ASCII.
  std::uint8_t fold_diacritics;        ///< 0 or 1.
  std::uint8_t contents;               ///< IndexContents. From version 3 on.
  std::array<std::uint8_t, 5> unused;  ///< Zeros.
  std::array<IndexSection, kSectionCount - kFirstSections> more_sections;  ///< From version 3 on.
  std::array<char, 16> stem;       ///< TextRules::stem, padded with zeros. From version 4 on.
  std::uint64_t stem_fingerprint;  ///< The result of stem_fingerprint() when the index was made. From version 4 on.

  [[nodiscard]] constexpr const IndexSection& section(std::size_t which) const noexcept {
    return which < kFirstSections ? first_sections[which] : more_sections[which - kFirstSections];
  }
  [[nodiscard]] constexpr IndexSection& section(std::size_t which) noexcept {
    return which < kFirstSections ? first_sections[which] : more_sections[which - kFirstSections];
  }
};
static_assert(std::is_trivially_copyable_v<IndexHeader> && sizeof(IndexHeader) == 168);

/// Size of the header in a file of an existing version.
[[nodiscard]] constexpr std::uint32_t header_bytes_of(std::uint32_t version) noexcept {
  return version == 1 ? 104 : version == 2 ? 112 : version == 3 ? 144 : sizeof(IndexHeader);
}

/// The number of sections in that version.
[[nodiscard]] constexpr std::size_t sections_of(std::uint32_t version) noexcept {
  return version < 3 ? kFirstSections : kSectionCount;
}

inline constexpr std::size_t kIndexAlignment = 8;
inline constexpr std::size_t kChecksumBytes = 8;

/// Views into the bytes of a checked index file, which must be aligned to 8 bytes.
struct IndexSections {
  IndexHeader header;
  std::span<const std::uint32_t> term_begins;
  std::span<const char> pool;
  std::span<const std::uint64_t> posting_begins;
  std::span<const std::uint32_t> postings;
  std::span<const std::uint32_t> lengths;      ///< Empty without frequencies.
  std::span<const std::uint16_t> frequencies;  ///< Empty without frequencies.
};

/// Checks every byte of a file and returns its sections. Throws DataError "<name>: <what is wrong>".
[[nodiscard]] IndexSections read_index(std::span<const std::byte> bytes, std::string_view name);

/// The counts that determine the layout of a file.
struct IndexCounts {
  std::uint32_t documents = 0;
  std::uint32_t terms = 0;
  std::uint64_t pool_bytes = 0;
  std::uint64_t postings = 0;
  IndexContents contents = IndexContents::documents;
};

/// The rules in a header that read_index() has checked.
[[nodiscard]] TextRules rules_of(const IndexHeader& header);

/// The header of a file with these counts, in the oldest version that can express these rules.
[[nodiscard]] IndexHeader plan_index(const IndexCounts& counts, const TextRules& rules);
/// The layout of a file of this version, without rules.
[[nodiscard]] IndexHeader plan_index(const IndexCounts& counts, std::uint32_t version) noexcept;

/// The most documents that an index with this many postings and bytes of terms may claim: a file needs only four bytes
/// to state their number, but the structures made from it take memory for each document.
[[nodiscard]] constexpr std::uint64_t documents_most(std::uint64_t postings, std::uint64_t pool_bytes) noexcept {
  return (std::uint64_t{1} << 20) + 64 * (postings + pool_bytes);
}

/// Writes the checksum of all preceding bytes into the last eight bytes.
void seal_index(std::span<std::byte> file) noexcept;

}  // namespace headrace::operators
