#pragma once

#include <cstdint>
#include <vector>

#include "operators/retrieval/synthetic.hpp"
#include "operators/zipf.hpp"

namespace headrace::operators {

/// The documents of a synthetic corpus, each derived from its number alone.
class SyntheticDocuments {
 public:
  /// Throws UsageError, naming the option out of range.
  explicit SyntheticDocuments(const SyntheticCorpus& corpus);

  /// The distinct words of document `number`, ascending, counted from 1. Callable from any thread.
  void words(std::uint32_t number, std::vector<std::uint32_t>& words) const;

 private:
  [[nodiscard]] std::uint32_t draw_length(std::uint64_t& state) const noexcept;

  ZipfLaw law_;
  std::uint64_t family_;         ///< Separates the sequences of different seeds.
  std::vector<double> at_most_;  ///< The probability of a length of at most 2 + i.
};

}  // namespace headrace::operators
