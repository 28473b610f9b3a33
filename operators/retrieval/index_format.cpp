#include "operators/retrieval/index_format.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "headrace/base/detail/bytes.hpp"
#include "headrace/base/error.hpp"
#include "headrace/operators/index.hpp"
#include "operators/retrieval/checksum.hpp"
#include "operators/retrieval/stemming.hpp"
#include "operators/retrieval/tokenizer.hpp"
#include "operators/retrieval/utf8.hpp"

namespace headrace::operators {

namespace {

constexpr std::array<std::string_view, kSectionCount> kSectionNames{"term begins", "term pool", "posting begins",
                                                                    "postings",    "lengths",   "frequencies"};

/// Throws the errors of one file.
class Complaint {
 public:
  explicit Complaint(std::string_view name) noexcept : name_(name) {}

  template <class... Arguments>
  [[noreturn]] void operator()(fmt::format_string<Arguments...> format, Arguments&&... arguments) const {
    throw DataError(fmt::format("{}: {}", name_, fmt::format(format, std::forward<Arguments>(arguments)...)));
  }

 private:
  std::string_view name_;
};

template <class T>
std::span<const T> section(std::span<const std::byte> bytes, const IndexHeader& header, std::size_t which) {
  const auto& at = header.section(which);
  return {reinterpret_cast<const T*>(bytes.data() + at.offset), at.bytes / sizeof(T)};
}

void check_whole(std::span<const std::byte> bytes, const IndexHeader& header, const Complaint& complain) {
  if (header.magic != IndexHeader::kMagic) complain("not a Headrace index (wrong magic bytes)");
  if (header.version > Index::kVersion) {
    complain("written by a newer Headrace in format version {}; this one reads up to {}", header.version,
             Index::kVersion);
  }
  if (header.version == 0 || header.header_bytes != header_bytes_of(header.version)) {
    complain("damaged: there is no version {} with a header of {} bytes", header.version, header.header_bytes);
  }
  if (header.file_bytes != bytes.size()) {
    complain("{}: it should have {} bytes but has {}", header.file_bytes > bytes.size() ? "truncated" : "damaged",
             header.file_bytes, bytes.size());
  }
  std::uint64_t stored;
  std::memcpy(&stored, bytes.data() + bytes.size() - kChecksumBytes, kChecksumBytes);
  if (stored != checksum(bytes.first(bytes.size() - kChecksumBytes))) complain("damaged: its checksum does not match");
}

std::string_view stem_name(const IndexHeader& header) noexcept {
  return std::string_view(header.stem.data(), header.stem.size())
      .substr(0, ::strnlen(header.stem.data(), header.stem.size()));
}

/// Whether a name is a plausible language, because it goes into messages. From version 4 on, a file has one.
bool is_stem_name(const IndexHeader& header) noexcept {
  const std::string_view name = stem_name(header);
  const auto fits = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; };
  const auto filling = std::span(header.stem).subspan(name.size());
  return name.empty() == (header.version < 4) && std::ranges::all_of(name, fits) &&
         std::ranges::all_of(filling, [](char c) { return c == '\0'; });
}

/// Queries must be stemmed in the same way as the documents were.
void check_stems(const IndexHeader& header, std::string_view file) {
  const std::string name(stem_name(header));
  if (name.empty()) return;
  const auto complain = [&](std::string_view what) {
    throw DataError(fmt::format("{}: its words are stemmed ({}), but {}", file, name, what));
  };
  const auto languages = stem_languages();
  if (languages.empty()) complain("Headrace was built without libstemmer");
  if (std::ranges::find(languages, name) == languages.end()) complain("the libstemmer here has no such language");
  if (stem_fingerprint(name) != header.stem_fingerprint) {
    complain("the libstemmer here gives different stems from the one that built the index; build the index again");
  }
}

/// The counts of a file fully determine its layout.
void check_layout(const IndexHeader& header, const Complaint& complain) {
  const std::uint64_t pool_bytes = header.section(kPool).bytes;
  if (header.document_count == 0 || header.document_count == kNoDocument) {
    complain("corrupt: a document count of {} is not possible", header.document_count);
  }
  // Sizes beyond that of the file would overflow the plan.
  if (pool_bytes > header.file_bytes || header.posting_count > header.file_bytes) complain("corrupt: impossible sizes");
  if (header.document_count > documents_most(header.posting_count, pool_bytes)) {
    complain("corrupt: it claims {} documents but has {} postings", header.document_count, header.posting_count);
  }
  const bool no_words = header.words > static_cast<std::uint8_t>(TextRules::Words::unicode);
  if (no_words || header.fold_diacritics > 1 || !is_stem_name(header)) {
    complain("corrupt: unknown rules for words");
  }
  if (header.contents > static_cast<std::uint8_t>(IndexContents::frequencies)) {
    complain("corrupt: unknown kind of contents");
  }
  const auto contents = static_cast<IndexContents>(header.contents);
  const IndexHeader plan = plan_index(
      {header.document_count, header.term_count, pool_bytes, header.posting_count, contents}, header.version);
  for (std::size_t i = 0; i < kSectionCount; ++i) {
    const auto& is = header.section(i);
    const auto& should = plan.section(i);
    if (is.offset != should.offset || is.bytes != should.bytes) {
      complain("corrupt: section '{}' claims {} bytes at {} instead of {} at {}", kSectionNames[i], is.bytes, is.offset,
               should.bytes, should.offset);
    }
  }
  if (plan.file_bytes != header.file_bytes) {
    complain("corrupt: its sections take {} bytes of {}", plan.file_bytes, header.file_bytes);
  }
}

void check_terms(const IndexSections& index, const Complaint& complain) {
  const auto& begins = index.term_begins;
  if (begins.front() != 0 || begins.back() != index.pool.size()) complain("corrupt: its terms do not fill their pool");
  std::string_view before;
  for (std::size_t i = 0; i + 1 < begins.size(); ++i) {
    if (begins[i] >= begins[i + 1] || begins[i + 1] - begins[i] > kTermBytesMax || begins[i + 1] > index.pool.size()) {
      complain("corrupt: term {} has impossible bounds", i);
    }
    const std::string_view term(index.pool.data() + begins[i], begins[i + 1] - begins[i]);
    if (term <= before) complain("corrupt: term {} is not in order", i);
    if (valid_utf8_prefix(term) != term.size()) complain("corrupt: term {} is not UTF-8", i);
    before = term;
  }
}

void check_postings(const IndexSections& index, const Complaint& complain) {
  const auto& begins = index.posting_begins;
  if (begins.front() != 0 || begins.back() != index.postings.size()) {
    complain("corrupt: its posting lists do not fill their section");
  }
  for (std::size_t i = 0; i + 1 < begins.size(); ++i) {
    if (begins[i] >= begins[i + 1] || begins[i + 1] > index.postings.size()) {
      complain("corrupt: the posting list of term {} has impossible bounds", i);
    }
    std::int64_t before = -1;
    for (const std::uint32_t id : index.postings.subspan(begins[i], begins[i + 1] - begins[i])) {
      if (std::int64_t{id} <= before) complain("corrupt: the posting list of term {} is not in order", i);
      before = id;
    }
    if (before >= std::int64_t{index.header.document_count}) {
      complain("corrupt: term {} is in document {} of {}", i, before, index.header.document_count);
    }
  }
}

/// A document has at least as many terms as postings.
void check_frequencies(const IndexSections& index, const Complaint& complain) {
  if (index.lengths.empty()) return;
  std::vector<std::uint64_t> counted(index.lengths.size());
  for (std::size_t i = 0; i < index.postings.size(); ++i) {
    if (index.frequencies[i] == 0) complain("corrupt: posting {} has a frequency of 0", i);
    counted[index.postings[i]] += index.frequencies[i];
  }
  for (std::size_t id = 0; id < counted.size(); ++id) {
    if (counted[id] > index.lengths[id] || (counted[id] == 0) != (index.lengths[id] == 0)) {
      complain("corrupt: document {} has {} terms but a length of {}", id, counted[id], index.lengths[id]);
    }
  }
}

}  // namespace

TextRules rules_of(const IndexHeader& header) {
  return {.words = static_cast<TextRules::Words>(header.words),
          .fold_diacritics = header.fold_diacritics != 0,
          .stem = std::string(stem_name(header))};
}

IndexHeader plan_index(const IndexCounts& counts, const TextRules& rules) {
  IndexHeader header = plan_index(counts, rules.stem.empty() ? 3 : 4);
  header.words = static_cast<std::uint8_t>(rules.words);
  header.fold_diacritics = rules.fold_diacritics ? 1 : 0;
  if (rules.stem.empty()) return header;
  if (rules.stem.size() > header.stem.size()) {
    throw UsageError(fmt::format("stemming: an index stores at most {} characters of a language name, not '{}'",
                                 header.stem.size(), rules.stem));
  }
  std::ranges::copy(rules.stem, header.stem.begin());
  header.stem_fingerprint = stem_fingerprint(rules.stem);
  return header;
}

IndexHeader plan_index(const IndexCounts& counts, std::uint32_t version) noexcept {
  IndexHeader header{};
  header.magic = IndexHeader::kMagic;
  header.version = version;
  header.header_bytes = header_bytes_of(version);
  header.contents = static_cast<std::uint8_t>(counts.contents);
  header.document_count = counts.documents;
  header.term_count = counts.terms;
  header.posting_count = counts.postings;
  const bool ranked = counts.contents == IndexContents::frequencies;
  const std::array<std::uint64_t, kSectionCount> sizes{
      (std::uint64_t{counts.terms} + 1) * sizeof(std::uint32_t), counts.pool_bytes,
      (std::uint64_t{counts.terms} + 1) * sizeof(std::uint64_t), counts.postings * sizeof(std::uint32_t),
      ranked ? counts.documents * sizeof(std::uint32_t) : 0,     ranked ? counts.postings * sizeof(std::uint16_t) : 0};
  std::uint64_t at = header.header_bytes;
  for (std::size_t i = 0; i < sections_of(version); ++i) {
    header.section(i) = {at, sizes[i]};
    at = align_up(at + sizes[i], kIndexAlignment);
  }
  header.file_bytes = at + kChecksumBytes;
  return header;
}

void seal_index(std::span<std::byte> file) noexcept {
  const std::uint64_t sum = checksum(file.first(file.size() - kChecksumBytes));
  std::memcpy(file.data() + file.size() - kChecksumBytes, &sum, kChecksumBytes);
}

IndexSections read_index(std::span<const std::byte> bytes, std::string_view name) {
  const Complaint complain(name);
  if (bytes.size() < header_bytes_of(1) + kChecksumBytes) {
    complain("not a Headrace index, or truncated: {} bytes are too few for the header", bytes.size());
  }
  IndexSections index;
  std::memcpy(&index.header, bytes.data(), std::min(bytes.size(), sizeof(IndexHeader)));
  check_whole(bytes, index.header, complain);
  if (index.header.version == 1) {  // in version 1, the bytes after the header are not part of it
    index.header.words = static_cast<std::uint8_t>(TextRules::Words::ascii);
    index.header.fold_diacritics = 0;
  }
  if (index.header.version < 3) {
    index.header.contents = static_cast<std::uint8_t>(IndexContents::documents);
    index.header.more_sections = {};
  }
  if (index.header.version < 4) {
    index.header.stem = {};
    index.header.stem_fingerprint = 0;
  }
  check_layout(index.header, complain);
  index.term_begins = section<std::uint32_t>(bytes, index.header, kTermBegins);
  index.pool = section<char>(bytes, index.header, kPool);
  index.posting_begins = section<std::uint64_t>(bytes, index.header, kPostingBegins);
  index.postings = section<std::uint32_t>(bytes, index.header, kPostings);
  index.lengths = section<std::uint32_t>(bytes, index.header, kLengths);
  index.frequencies = section<std::uint16_t>(bytes, index.header, kFrequencies);
  check_terms(index, complain);
  check_postings(index, complain);
  check_frequencies(index, complain);
  check_stems(index.header, name);
  return index;
}

}  // namespace headrace::operators
