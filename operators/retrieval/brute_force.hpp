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

/// Answers Boolean queries the slow and plain way: looks at every document's set of words. It shares only the
/// tokenizer and the query parser with the index, and so can tell whether the operator's answers are right.
class BruteForce {
 public:
  /// Throws DataError when a document is not UTF-8.
  explicit BruteForce(std::span<const std::string> documents, const TextRules& rules = {});

  /// Throws UsageError where Index::compile() would.
  [[nodiscard]] RetrievalAnswer answer(std::string_view text) const;

 private:
  std::unordered_map<std::string, std::uint32_t> words_;
  std::vector<std::vector<std::uint32_t>> documents_;  ///< Each document's words, sorted.
  TextRules rules_;
};

/// The answer to one query over `documents`.
[[nodiscard]] RetrievalAnswer reference_answer(std::span<const std::string> documents, std::string_view text);

}  // namespace headrace::operators
