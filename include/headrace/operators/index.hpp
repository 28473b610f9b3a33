#pragma once

// An Index says which documents hold which terms. An IndexBuilder makes one of texts; files keep it, and the retrieval
// operator searches it on devices.
//
//     headrace::operators::IndexBuilder builder;
//     builder.add("the quick brown fox");
//     builder.add("the lazy dog");
//     headrace::operators::Index index = builder.build();
//     for (std::uint32_t document : index.matches("the AND NOT dog")) std::printf("%u\n", document);
//     index.save("words.hridx");

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/operators/detail/match_page.hpp"
#include "headrace/operators/detail/retrieval_query.hpp"
#include "headrace/operators/detail/text_rules.hpp"

namespace headrace::operators {

class TermSlots;

/// What the bytes of an index's file are.
enum class IndexFile : std::uint8_t {
  mapped,  ///< Those in memory, so that load() has next to nothing to do, and processes share them.
  packed,  ///< About a third as many, by variable bytes; load() takes memory and time to unpack them.
};

/// Which documents hold which terms. Immutable; a copy shares the memory. Its bytes in memory are those of its file:
/// one header, six sections, one checksum (operators/retrieval/index_format.hpp).
class Index {
 public:
  /// The newest version of the file format. load() reads no newer one; save() writes it where the file is to be packed,
  /// version 4 where words are stemmed, and version 3, which older libraries read as well, where neither is so.
  static constexpr std::uint32_t kVersion = 5;

  /// Maps the file, or unpacks it into memory, and checks all of it. The file must not be written to while the index is
  /// in use (save() never does: it replaces files). Throws SystemError when it cannot be read, DataError naming the
  /// file and what is wrong with it, also when another process cuts it short meanwhile; and where its words are
  /// stemmed, and libstemmer is not there, or has no such language, or gives other stems than the one that the index
  /// was made with.
  [[nodiscard]] static Index load(const std::filesystem::path& path);
  /// The same from bytes in memory, which are copied. `name` stands for the file in errors.
  [[nodiscard]] static Index from_bytes(std::span<const std::byte> bytes, std::string_view name = "index");
  /// Writes the file as write_output() does: whole or not at all. Throws SystemError.
  void save(const std::filesystem::path& path, const std::function<void()>& interrupted = {},
            IndexFile form = IndexFile::mapped) const;

  /// The query that `text` stands for. Language: words; AND, OR, NOT in any case; parentheses; words beside each other
  /// mean AND; NOT binds closer than AND, and AND closer than OR. What lies between spaces, parentheses and quotes is
  /// split into terms by the index's own rules, as documents were, and all of these have to be there: well-known is
  /// (well AND known). What stands in double quotes is never an operator: "and" finds and. A term that no document has
  /// matches nothing. Throws UsageError with the position (bytes, from 1) and what was expected, of a word without a
  /// letter or digit as well; or that says by how much one of the limits in retrieval_query.hpp is exceeded.
  [[nodiscard]] RetrievalQuery compile(std::string_view text) const;

  /// The same for many queries, by as many threads as pay: texts[i] gives queries[i], and both have the same size. What
  /// is wrong with a text is thrown as compile() throws it, of the first such text of a thread.
  void compile_many(std::span<const std::string_view> texts, std::span<RetrievalQuery> queries) const;

  /// How its documents were split into terms, and queries are.
  [[nodiscard]] const TextRules& text_rules() const noexcept { return rules_; }

  [[nodiscard]] std::uint32_t document_count() const noexcept { return document_count_; }
  [[nodiscard]] std::uint32_t term_count() const noexcept { return term_count_; }
  [[nodiscard]] std::uint64_t posting_count() const noexcept { return posting_begins_[term_count_]; }

  /// Terms are numbered in the order of their bytes. `term` < term_count().
  [[nodiscard]] std::string_view term(std::uint32_t term) const noexcept {
    return {pool_ + term_begins_[term], term_begins_[term + 1] - term_begins_[term]};
  }
  /// The ids of the documents that have the term, ascending. `term` < term_count().
  [[nodiscard]] std::span<const std::uint32_t> postings(std::uint32_t term) const noexcept {
    return {postings_ + posting_begins_[term], postings_ + posting_begins_[term + 1]};
  }
  /// The number of a term as documents have it (lower-cased; its stem, where words are stemmed), or none.
  [[nodiscard]] std::optional<std::uint32_t> find(std::string_view term) const noexcept;

  /// The ids of all documents that satisfy a query, ascending, found on the host: for listing what an answer only
  /// counts. Throws as compile() does.
  [[nodiscard]] std::vector<std::uint32_t> matches(std::string_view text) const;
  /// How many documents satisfy a query, and the ids of some of them. A page is cut from the list of all matches, which
  /// is found anew for each page. Throws as compile() does.
  [[nodiscard]] MatchPage page(std::string_view text, PageRange range = {}) const;

  /// Whether the index keeps how often each document has each of its terms.
  [[nodiscard]] bool has_frequencies() const noexcept { return lengths_ != nullptr; }
  /// How often each document of postings(term) has the term: 1 to 65,535, which stands for more as well. Needs
  /// has_frequencies().
  [[nodiscard]] std::span<const std::uint16_t> frequencies(std::uint32_t term) const noexcept {
    return {frequencies_ + posting_begins_[term], frequencies_ + posting_begins_[term + 1]};
  }
  /// How many terms each document has, repetitions included. Needs has_frequencies().
  [[nodiscard]] std::span<const std::uint32_t> lengths() const noexcept { return {lengths_, document_count_}; }
  /// The mean of lengths(); 0 where there are no terms.
  [[nodiscard]] double mean_length() const noexcept { return mean_length_; }

  /// The documents that satisfy a query, the most relevant first, found on the host. The score is the sum of
  ///   ln(1 + (N - n + 0.5) / (n + 0.5)) * f * (k1 + 1) / (f + k1 * (1 - b + b * length / mean length))
  /// over the query's terms that are not negated, each once: the document has the term f times, and n of N documents
  /// have it. Throws as compile() does, and UsageError where the index has no frequencies or a parameter is out of
  /// range.
  [[nodiscard]] RankedPage rank(std::string_view text, PageRange range = {}, const Bm25& bm25 = {}) const;

  /// The whole file.
  [[nodiscard]] std::span<const std::byte> bytes() const noexcept { return bytes_; }

 private:
  friend class IndexBuilder;
  friend class SyntheticIndexer;
  [[nodiscard]] static Index unpacked(std::span<const std::byte> bytes, std::string_view name);
  Index(std::span<const std::byte> bytes, std::shared_ptr<const void> owner, std::string_view name);

  std::span<const std::byte> bytes_;
  std::shared_ptr<const void> owner_;
  const std::uint32_t* term_begins_ = nullptr;
  const std::uint64_t* posting_begins_ = nullptr;
  const std::uint32_t* postings_ = nullptr;
  const char* pool_ = nullptr;
  const std::uint32_t* lengths_ = nullptr;
  const std::uint16_t* frequencies_ = nullptr;
  double mean_length_ = 0;
  std::shared_ptr<const TermSlots> slots_;
  std::uint32_t document_count_ = 0;
  std::uint32_t term_count_ = 0;
  TextRules rules_{};
};

/// What an index keeps of its documents.
enum class IndexContents : std::uint8_t {
  documents,    ///< Which documents have which terms.
  frequencies,  ///< And how often, for Index::rank(): 2 bytes a posting and 4 a document more.
};

/// Makes an index of documents given one after the other.
class IndexBuilder {
 public:
  /// Throws UsageError where the rules name a language that is not one of stem_languages().
  explicit IndexBuilder(const TextRules& rules = {}, IndexContents contents = IndexContents::documents);
  ~IndexBuilder();
  IndexBuilder(IndexBuilder&&) noexcept;
  IndexBuilder& operator=(IndexBuilder&&) noexcept;

  /// Adds a document and returns its id; ids count from 0. Terms are those of the rules; of a longer term than 128
  /// bytes the first 128 count (fewer, so that no character is cut), before it is stemmed. Throws DataError naming the
  /// document and the byte where it is not UTF-8, and has then added nothing.
  std::uint32_t add(std::string_view document);

  [[nodiscard]] std::uint32_t document_count() const noexcept;

  /// The index of all documents added. The builder is then empty again. Throws DataError when there is no document.
  [[nodiscard]] Index build();

 private:
  class Corpus;
  std::unique_ptr<Corpus> corpus_;
};

}  // namespace headrace::operators
