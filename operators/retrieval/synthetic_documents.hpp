#pragma once

#include <cstdint>
#include <vector>

#include "operators/retrieval/synthetic.hpp"
#include "operators/zipf.hpp"

namespace headrace::operators {

/// The documents of a synthetic corpus, each made from nothing but its number.
class SyntheticDocuments {
 public:
  /// Throws UsageError naming what is out of range.
  explicit SyntheticDocuments(const SyntheticCorpus& corpus);

  /// The different words of document `number`, ascending, counted from 1. Any thread may call.
  void words(std::uint32_t number, std::vector<std::uint32_t>& words) const;

 private:
  [[nodiscard]] std::uint32_t draw_length(std::uint64_t& state) const noexcept;

  ZipfLaw law_;
  std::uint64_t family_;         ///< Tells the sequences of one seed from those of another.
  std::vector<double> at_most_;  ///< The probability of a length of at most 2 + i.
};

}  // namespace headrace::operators
