#pragma once

// An Index records which documents have which terms. An IndexBuilder makes one from texts. Files store it, and the
// retrieval operator searches it on devices.
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

/// The format of an index file.
enum class IndexFile : std::uint8_t {
  mapped,  ///< The same bytes as in memory: load() maps them at once, and processes share them.
  packed,  ///< About a third of the size, with variable-length numbers; load() takes memory and time to unpack them.
};

/// Records which documents have which terms. Immutable; a copy shares the memory. Its bytes in memory are those of its
/// file: one header, six sections, one checksum (operators/retrieval/index_format.hpp).
class Index {
 public:
  /// The newest version of the file format that load() reads. save() writes it for packed files, version 4 if words are
  /// stemmed, and otherwise version 3, which older libraries read as well.
  static constexpr std::uint32_t kVersion = 5;

  /// Maps the file, or unpacks it into memory, and checks all of it. The file must not be written to while the index is
  /// in use (save() never does: it replaces files). Throws SystemError if it cannot be read, and DataError naming the
  /// file if it is damaged, another process truncates it meanwhile, or its words are stemmed and libstemmer is missing,
  /// lacks the language, or gives other stems than when the index was made.
  [[nodiscard]] static Index load(const std::filesystem::path& path);
  /// The same from bytes in memory, which are copied. `name` stands for the file in errors.
  [[nodiscard]] static Index from_bytes(std::span<const std::byte> bytes, std::string_view name = "index");
  /// Writes the file as write_output() does: whole or not at all. Throws SystemError.
  void save(const std::filesystem::path& path, const std::function<void()>& interrupted = {},
            IndexFile form = IndexFile::mapped) const;

  /// Compiles a query. Language: words; AND, OR, NOT in any case; parentheses; adjacent words mean AND; NOT binds
  /// tighter than AND, and AND tighter than OR. Text between spaces, parentheses and quotes is split into terms by the
  /// index's own rules, as documents were, and all of these must match: well-known is (well AND known). Text in double
  /// quotes is never an operator: "and" finds the word. A term that no document has matches nothing. Throws UsageError
  /// with the position (bytes, from 1) and what was expected, also for a word without a letter or digit, or if a limit
  /// of retrieval_query.hpp is exceeded.
  [[nodiscard]] RetrievalQuery compile(std::string_view text) const;

  /// Compiles many queries with as many threads as pay: texts[i] becomes queries[i], and both have the same size.
  /// Throws as compile() does, for the first bad text that a thread meets.
  void compile_many(std::span<const std::string_view> texts, std::span<RetrievalQuery> queries) const;

  /// The rules by which documents and queries are split into terms.
  [[nodiscard]] const TextRules& text_rules() const noexcept { return rules_; }

  /// Documents; their ids count from 0.
  [[nodiscard]] std::uint32_t document_count() const noexcept { return document_count_; }
  /// Different terms.
  [[nodiscard]] std::uint32_t term_count() const noexcept { return term_count_; }
  /// Pairs of a term and a document that has it.
  [[nodiscard]] std::uint64_t posting_count() const noexcept { return posting_begins_[term_count_]; }

  /// The term of that number; terms are numbered in the order of their bytes. Undefined unless `term` < term_count().
  [[nodiscard]] std::string_view term(std::uint32_t term) const noexcept {
    return {pool_ + term_begins_[term], term_begins_[term + 1] - term_begins_[term]};
  }
  /// The ids of the documents that have the term, ascending. Undefined unless `term` < term_count().
  [[nodiscard]] std::span<const std::uint32_t> postings(std::uint32_t term) const noexcept {
    return {postings_ + posting_begins_[term], postings_ + posting_begins_[term + 1]};
  }
  /// The number of a term in the form of the index (in lower case; its stem if words are stemmed); empty if no document
  /// has it.
  [[nodiscard]] std::optional<std::uint32_t> find(std::string_view term) const noexcept;

  /// The ids of all documents that satisfy a query, ascending, found on the host. An answer of the operator only counts
  /// them. Throws as compile() does.
  [[nodiscard]] std::vector<std::uint32_t> matches(std::string_view text) const;
  /// The number of documents that satisfy a query, and the ids of those in `range`. Each call finds all matches anew.
  /// Throws as compile() does.
  [[nodiscard]] MatchPage page(std::string_view text, PageRange range = {}) const;

  /// True if the index keeps how often each document has each of its terms.
  [[nodiscard]] bool has_frequencies() const noexcept { return lengths_ != nullptr; }
  /// How often each document of postings(term) has the term: 1 to 65,535, which stands for more as well. Needs
  /// has_frequencies().
  [[nodiscard]] std::span<const std::uint16_t> frequencies(std::uint32_t term) const noexcept {
    return {frequencies_ + posting_begins_[term], frequencies_ + posting_begins_[term + 1]};
  }
  /// The number of terms of each document, including repetitions. Needs has_frequencies().
  [[nodiscard]] std::span<const std::uint32_t> lengths() const noexcept { return {lengths_, document_count_}; }
  /// The mean of lengths(); 0 if there are no terms.
  [[nodiscard]] double mean_length() const noexcept { return mean_length_; }

  /// The documents that satisfy a query, most relevant first, found on the host. The score is the sum of
  ///   ln(1 + (N - n + 0.5) / (n + 0.5)) * f * (k1 + 1) / (f + k1 * (1 - b + b * length / mean length))
  /// over the query's terms that are not negated, each once: the document has the term f times, and n of N documents
  /// have it. Throws as compile() does, and UsageError if the index has no frequencies or a parameter is out of
  /// range.
  [[nodiscard]] RankedPage rank(std::string_view text, PageRange range = {}, const Bm25& bm25 = {}) const;

  /// The whole index as bytes, which are those of a mapped file.
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
  frequencies,  ///< Also how often, for Index::rank(): 2 more bytes per posting and 4 per document.
};

/// Makes an index of documents given one after the other.
class IndexBuilder {
 public:
  /// Throws UsageError if the rules name a language that is not one of stem_languages().
  explicit IndexBuilder(const TextRules& rules = {}, IndexContents contents = IndexContents::documents);
  ~IndexBuilder();
  IndexBuilder(IndexBuilder&&) noexcept;
  IndexBuilder& operator=(IndexBuilder&&) noexcept;

  /// Adds a document and returns its id; ids count from 0. Terms follow the rules; longer ones are cut to 128 bytes, or
  /// to the last whole character before that, and then stemmed. Throws DataError, without adding anything, that names
  /// the document and the byte that is not UTF-8.
  std::uint32_t add(std::string_view document);

  /// Documents added since the last build().
  [[nodiscard]] std::uint32_t document_count() const noexcept;

  /// Builds the index of all documents added, and empties the builder. Throws DataError if there is no document.
  [[nodiscard]] Index build();

 private:
  class Corpus;
  std::unique_ptr<Corpus> corpus_;
};

}  // namespace headrace::operators
