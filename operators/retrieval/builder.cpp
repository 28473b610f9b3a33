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

/// The documents so far, as the numbers of their distinct terms: 4 bytes a posting and 8 a document.
class IndexBuilder::Corpus {
 public:
  explicit Corpus(const TextRules& rules) : tokenizer_(rules) {}

  [[nodiscard]] const TextRules& rules() const noexcept { return tokenizer_.rules(); }

  std::uint32_t add(std::string_view document) {
    const std::uint32_t id = document_count();
    const std::size_t valid = valid_utf8_prefix(document);
    if (valid != document.size()) {
      throw DataError(fmt::format("document {} is not UTF-8: byte {} (0x{:02X}) is out of place", id, valid,
                                  static_cast<unsigned char>(document[valid])));
    }
    if (id == kNoDocument - 1) throw DataError(fmt::format("an index holds at most {} documents", id));
    for (const std::string& term : tokenizer_.split(document)) add_term(term, id);
    ends_.push_back(terms_.size());
    return id;
  }

  [[nodiscard]] std::uint32_t document_count() const noexcept { return static_cast<std::uint32_t>(ends_.size()); }

  /// The bytes of the index's file.
  [[nodiscard]] std::vector<std::uint64_t> image() const {
    const auto order = table_.sorted();
    const IndexHeader header = plan_index(document_count(), table_.size(), table_.pool_bytes(), terms_.size(), rules());
    std::vector<std::uint64_t> words(header.file_bytes / sizeof(std::uint64_t));
    auto* const file = reinterpret_cast<std::byte*>(words.data());
    std::memcpy(file, &header, sizeof(header));
    const auto at = [&](std::size_t which) { return file + header.sections[which].offset; };
    write_terms(order, reinterpret_cast<std::uint32_t*>(at(kTermBegins)), reinterpret_cast<char*>(at(kPool)));
    write_postings(order, reinterpret_cast<std::uint64_t*>(at(kPostingBegins)),
                   reinterpret_cast<std::uint32_t*>(at(kPostings)));
    seal_index({file, header.file_bytes});
    return words;
  }

 private:
  void add_term(std::string_view term, std::uint32_t document) {
    const std::uint32_t number = table_.number(term);
    if (number == last_document_.size()) {
      last_document_.push_back(kNoDocument);
      counts_.push_back(0);
    }
    if (last_document_[number] == document) return;
    last_document_[number] = document;
    ++counts_[number];
    terms_.push_back(number);
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

  /// Turns documents' terms into terms' documents by counting sort.
  void write_postings(const std::vector<std::uint32_t>& order, std::uint64_t* begins, std::uint32_t* postings) const {
    std::vector<std::uint64_t> next(order.size());
    std::uint64_t end = 0;
    *begins++ = 0;
    for (const std::uint32_t number : order) {
      next[number] = end;
      *begins++ = end += counts_[number];
    }
    std::uint64_t i = 0;
    for (std::uint32_t document = 0; document < document_count(); ++document) {
      for (; i < ends_[document]; ++i) postings[next[terms_[i]]++] = document;
    }
  }

  TermTable table_;
  std::vector<std::uint32_t> terms_;
  std::vector<std::uint64_t> ends_;           ///< The end of each document in terms_.
  std::vector<std::uint32_t> counts_;         ///< Documents that have each term.
  std::vector<std::uint32_t> last_document_;  ///< The last document that had each term.
  Tokenizer tokenizer_;
};

IndexBuilder::IndexBuilder(const TextRules& rules) : corpus_(std::make_unique<Corpus>(rules)) {}
IndexBuilder::~IndexBuilder() = default;
IndexBuilder::IndexBuilder(IndexBuilder&&) noexcept = default;
IndexBuilder& IndexBuilder::operator=(IndexBuilder&&) noexcept = default;

std::uint32_t IndexBuilder::add(std::string_view document) { return corpus_->add(document); }

std::uint32_t IndexBuilder::document_count() const noexcept { return corpus_->document_count(); }

Index IndexBuilder::build() {
  if (document_count() == 0) throw DataError("the corpus is empty: an index needs at least one document");
  const auto corpus = std::exchange(corpus_, std::make_unique<Corpus>(corpus_->rules()));
  auto words = std::make_shared<const std::vector<std::uint64_t>>(corpus->image());
  const auto bytes = std::as_bytes(std::span(*words));
  return Index(bytes, std::move(words), "the index just built");
}

}  // namespace headrace::operators
