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
///   IndexHeader     as many of its bytes as the version has
///   term begins     uint32 for each term and one more: where in the pool it begins; the next one's begin is its end
///   pool            the terms one after the other, in ascending order of their bytes
///   posting begins  uint64 for each term and one more: where in the postings its list begins
///   postings        uint32 document ids, each list strictly ascending
///   lengths         uint32 for each document: how many terms it has, repetitions included
///   frequencies     uint16 for each posting: how often the document has the term, 65,535 where it is more
///   checksum        XXH64 of everything before it
/// Sections start at multiples of 8 and are filled up with zeros. The last two are there from version 3 on, and are
/// empty in an index without frequencies. Files of version 4 are those whose words are stemmed, of which older
/// libraries know nothing; others are still written as version 3. Those of version 5 are packed: packed_index.hpp.
namespace headrace::operators {

static_assert(std::endian::native == std::endian::little, "index files are mapped as they are");

struct IndexSection {
  std::uint64_t offset;  ///< From the start of the file.
  std::uint64_t bytes;   ///< Without the filling.
};

// Which section is which.
inline constexpr std::size_t kTermBegins = 0;
inline constexpr std::size_t kPool = 1;
inline constexpr std::size_t kPostingBegins = 2;
inline constexpr std::size_t kPostings = 3;
inline constexpr std::size_t kLengths = 4;
inline constexpr std::size_t kFrequencies = 5;
inline constexpr std::size_t kSectionCount = 6;
inline constexpr std::size_t kFirstSections = 4;  ///< Those of every version, which stand before the rules.

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
  std::uint8_t words;                  ///< TextRules::Words. From version 2 on; before, words were those of ASCII.
  std::uint8_t fold_diacritics;        ///< 0 or 1.
  std::uint8_t contents;               ///< IndexContents. From version 3 on.
  std::array<std::uint8_t, 5> unused;  ///< Zeros.
  std::array<IndexSection, kSectionCount - kFirstSections> more_sections;  ///< From version 3 on.
  std::array<char, 16> stem;       ///< TextRules::stem, filled up with zeros. From version 4 on.
  std::uint64_t stem_fingerprint;  ///< What stem_fingerprint() gave where it was made. From version 4 on.

  [[nodiscard]] constexpr const IndexSection& section(std::size_t which) const noexcept {
    return which < kFirstSections ? first_sections[which] : more_sections[which - kFirstSections];
  }
  [[nodiscard]] constexpr IndexSection& section(std::size_t which) noexcept {
    return which < kFirstSections ? first_sections[which] : more_sections[which - kFirstSections];
  }
};
static_assert(std::is_trivially_copyable_v<IndexHeader> && sizeof(IndexHeader) == 168);

/// Bytes of the header in a file of a version, which exists.
[[nodiscard]] constexpr std::uint32_t header_bytes_of(std::uint32_t version) noexcept {
  return version == 1 ? 104 : version == 2 ? 112 : version == 3 ? 144 : sizeof(IndexHeader);
}

/// How many sections it has.
[[nodiscard]] constexpr std::size_t sections_of(std::uint32_t version) noexcept {
  return version < 3 ? kFirstSections : kSectionCount;
}

inline constexpr std::size_t kIndexAlignment = 8;
inline constexpr std::size_t kChecksumBytes = 8;

/// Views into the bytes of a checked index file, which is aligned to 8 bytes.
struct IndexSections {
  IndexHeader header;
  std::span<const std::uint32_t> term_begins;
  std::span<const char> pool;
  std::span<const std::uint64_t> posting_begins;
  std::span<const std::uint32_t> postings;
  std::span<const std::uint32_t> lengths;      ///< Empty without frequencies.
  std::span<const std::uint16_t> frequencies;  ///< Empty without frequencies.
};

/// Checks every byte of a file and gives its sections. Throws DataError "<name>: <what is wrong>".
[[nodiscard]] IndexSections read_index(std::span<const std::byte> bytes, std::string_view name);

/// What decides where the parts of a file are.
struct IndexCounts {
  std::uint32_t documents = 0;
  std::uint32_t terms = 0;
  std::uint64_t pool_bytes = 0;
  std::uint64_t postings = 0;
  IndexContents contents = IndexContents::documents;
};

/// The rules that a header names, which read_index() has checked.
[[nodiscard]] TextRules rules_of(const IndexHeader& header);

/// The header of a file with these counts, of the oldest version that can say these rules.
[[nodiscard]] IndexHeader plan_index(const IndexCounts& counts, const TextRules& rules);
/// Where things are in a file of a version, without rules.
[[nodiscard]] IndexHeader plan_index(const IndexCounts& counts, std::uint32_t version) noexcept;

/// Documents that an index may have beside so many postings and bytes of terms: what is made of it takes memory for
/// each document, and a file says how many there are in four bytes.
[[nodiscard]] constexpr std::uint64_t documents_most(std::uint64_t postings, std::uint64_t pool_bytes) noexcept {
  return (std::uint64_t{1} << 20) + 64 * (postings + pool_bytes);
}

/// Writes the checksum over all bytes before the last eight into these.
void seal_index(std::span<std::byte> file) noexcept;

}  // namespace headrace::operators
