#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "headrace/operators/detail/retrieval_query.hpp"
#include "headrace/operators/detail/text_rules.hpp"

namespace headrace::operators {

/// Answers Boolean queries in the slow, obvious way, by looking at every document's set of words. It shares only the
/// tokenizer and the query parser with the index, so it can verify the operator's answers.
class BruteForce {
 public:
  /// Throws DataError if a document is not UTF-8.
  explicit BruteForce(std::span<const std::string> documents, const TextRules& rules = {});

  /// Throws UsageError if Index::compile() would.
  [[nodiscard]] RetrievalAnswer answer(std::string_view text) const;

 private:
  std::unordered_map<std::string, std::uint32_t> words_;
  std::vector<std::vector<std::uint32_t>> documents_;  ///< Each document's words, sorted.
  TextRules rules_;
};

/// The answer to one query over `documents`.
[[nodiscard]] RetrievalAnswer reference_answer(std::span<const std::string> documents, std::string_view text);

}  // namespace headrace::operators
