#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "headrace/base/error.hpp"
#include "headrace/operators/index.hpp"
#include "operators/retrieval/index_format.hpp"
#include "operators/retrieval/term_table.hpp"
#include "operators/retrieval/tokenizer.hpp"
#include "operators/retrieval/utf8.hpp"

namespace headrace::operators {

/// The documents so far, as the numbers of their distinct terms: 4 bytes a posting, 8 a document and 16 a term; with
/// frequencies 2 a posting and 4 a document more.
class IndexBuilder::Corpus {
 public:
  Corpus(const TextRules& rules, IndexContents contents) : tokenizer_(rules), contents_(contents) {}

  /// An empty corpus that makes indexes of the same kind.
  [[nodiscard]] std::unique_ptr<Corpus> emptied() const {
    return std::make_unique<Corpus>(tokenizer_.rules(), contents_);
  }

  std::uint32_t add(std::string_view document) {
    const std::uint32_t id = document_count();
    const std::size_t valid = valid_utf8_prefix(document);
    if (valid != document.size()) {
      throw DataError(fmt::format("document {} is not UTF-8: byte {} (0x{:02X}) is out of place", id, valid,
                                  static_cast<unsigned char>(document[valid])));
    }
    if (id == kNoDocument - 1) throw DataError(fmt::format("an index holds at most {} documents", id));
    const auto& terms = tokenizer_.split(document);
    for (const std::string& term : terms) add_term(term, id);
    if (counts_frequencies()) {
      lengths_.resize(id + std::size_t{1});
      lengths_[id] = static_cast<std::uint32_t>(terms.size());
    }
    ends_.push_back(terms_.size());
    return id;
  }

  [[nodiscard]] std::uint32_t document_count() const noexcept { return static_cast<std::uint32_t>(ends_.size()); }

  /// The contents of the index file.
  [[nodiscard]] std::vector<std::uint64_t> image() const {
    const auto order = table_.sorted();
    const IndexHeader header = plan_index(
        {document_count(), table_.size(), table_.pool_bytes(), terms_.size(), contents_}, tokenizer_.rules());
    std::vector<std::uint64_t> words(header.file_bytes / sizeof(std::uint64_t));
    auto* const file = reinterpret_cast<std::byte*>(words.data());
    std::memcpy(file, &header, header.header_bytes);
    const auto at = [&](std::size_t which) { return file + header.section(which).offset; };
    write_terms(order, reinterpret_cast<std::uint32_t*>(at(kTermBegins)), reinterpret_cast<char*>(at(kPool)));
    write_postings(order, reinterpret_cast<std::uint64_t*>(at(kPostingBegins)),
                   reinterpret_cast<std::uint32_t*>(at(kPostings)), reinterpret_cast<std::uint16_t*>(at(kFrequencies)));
    if (counts_frequencies()) std::memcpy(at(kLengths), lengths_.data(), document_count() * sizeof(std::uint32_t));
    seal_index({file, header.file_bytes});
    return words;
  }

 private:
  [[nodiscard]] bool counts_frequencies() const noexcept { return contents_ == IndexContents::frequencies; }

  // Vectors grow before their new entries count, so they stay consistent with each other if memory runs out.
  void add_term(std::string_view text, std::uint32_t document) {
    const std::uint32_t number = table_.number(text);
    if (number >= states_.size()) states_.resize(number + std::size_t{1});
    TermState& term = states_[number];
    if (term.last_document != document) {
      if (counts_frequencies()) frequencies_.resize(terms_.size() + 1);
      terms_.push_back(number);
      term.last_document = document;
      term.last_place = terms_.size() - 1;
      ++term.documents;
      if (counts_frequencies()) frequencies_.back() = 0;
    }
    if (!counts_frequencies()) return;
    std::uint16_t& frequency = frequencies_[term.last_place];
    if (frequency < std::numeric_limits<std::uint16_t>::max()) ++frequency;
  }

  void write_terms(const std::vector<std::uint32_t>& order, std::uint32_t* begins, char* pool) const {
    std::uint32_t end = 0;
    *begins++ = 0;
    for (const std::uint32_t number : order) {
      const std::string_view term = table_.term(number);
      std::memcpy(pool + end, term.data(), term.size());
      *begins++ = end += static_cast<std::uint32_t>(term.size());
    }
  }

  /// Inverts the documents' terms into posting lists by counting sort.
  void write_postings(const std::vector<std::uint32_t>& order, std::uint64_t* begins, std::uint32_t* postings,
                      std::uint16_t* frequencies) const {
    std::vector<std::uint64_t> next(order.size());
    std::uint64_t end = 0;
    *begins++ = 0;
    for (const std::uint32_t number : order) {
      next[number] = end;
      *begins++ = end += states_[number].documents;
    }
    std::uint64_t i = 0;
    for (std::uint32_t document = 0; document < document_count(); ++document) {
      for (; i < ends_[document]; ++i) {
        const std::uint64_t place = next[terms_[i]]++;
        postings[place] = document;
        if (counts_frequencies()) frequencies[place] = frequencies_[i];
      }
    }
  }

  struct TermState {
    std::uint32_t documents = 0;  ///< Number of documents with the term.
    std::uint32_t last_document = kNoDocument;
    std::uint64_t last_place = 0;  ///< Position of its last document in terms_.
  };

  TermTable table_;
  std::vector<TermState> states_;  ///< Indexed by term number.
  std::vector<std::uint32_t> terms_;
  std::vector<std::uint64_t> ends_;         ///< The end of each document in terms_.
  std::vector<std::uint32_t> lengths_;      ///< The length of each document, with frequencies.
  std::vector<std::uint16_t> frequencies_;  ///< Parallel to terms_, with frequencies.
  Tokenizer tokenizer_;
  IndexContents contents_;
};

IndexBuilder::IndexBuilder(const TextRules& rules, IndexContents contents)
    : corpus_(std::make_unique<Corpus>(rules, contents)) {}
IndexBuilder::~IndexBuilder() = default;
IndexBuilder::IndexBuilder(IndexBuilder&&) noexcept = default;
IndexBuilder& IndexBuilder::operator=(IndexBuilder&&) noexcept = default;

std::uint32_t IndexBuilder::add(std::string_view document) { return corpus_->add(document); }

std::uint32_t IndexBuilder::document_count() const noexcept { return corpus_->document_count(); }

Index IndexBuilder::build() {
  if (document_count() == 0) throw DataError("the corpus is empty: an index needs at least one document");
  const auto corpus = std::exchange(corpus_, corpus_->emptied());
  auto words = std::make_shared<const std::vector<std::uint64_t>>(corpus->image());
  const auto bytes = std::as_bytes(std::span(*words));
  return Index(bytes, std::move(words), "the index just built");
}

}  // namespace headrace::operators
