#include "operators/retrieval/synthetic_documents.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "headrace/base/error.hpp"
#include "operators/sample.hpp"

namespace headrace::operators {

namespace {

constexpr std::uint32_t kLengthLeast = 2;
constexpr double kLengthMost = 500;
constexpr double kExponentMost = 4;

void check(const SyntheticCorpus& corpus) {
  require_in_range("synthetic corpus: documents", corpus.documents, 1, kNoDocument - 1);
  require_in_range("synthetic corpus: terms", corpus.terms, 2, 1U << 30);
  const bool length_in_range = corpus.length >= kLengthLeast && corpus.length <= kLengthMost;  // no NaN is
  if (!length_in_range) {
    throw UsageError(
        fmt::format("synthetic corpus: length must be {} to {}, not {}", kLengthLeast, kLengthMost, corpus.length));
  }
  const bool exponent_in_range = corpus.exponent >= 0 && corpus.exponent <= kExponentMost;
  if (!exponent_in_range) {
    throw UsageError(fmt::format("synthetic corpus: exponent must be 0 to {}, not {}", kExponentMost, corpus.exponent));
  }
}

/// Poisson's cumulative distribution, up to where doubles cannot distinguish it from 1.
std::vector<double> poisson(double mean) {
  std::vector<double> at_most;
  double probability = std::exp(-mean);
  double sum = 0;
  for (std::uint32_t i = 0; i <= mean || probability > 0x1p-60; ++i) {
    sum += probability;
    at_most.push_back(sum);
    probability *= mean / (i + 1);
  }
  return at_most;
}

SyntheticCorpus checked(const SyntheticCorpus& corpus) {
  check(corpus);
  return corpus;
}

}  // namespace

SyntheticDocuments::SyntheticDocuments(const SyntheticCorpus& corpus)
    : law_(checked(corpus).terms, corpus.exponent), at_most_(poisson(corpus.length - kLengthLeast)) {
  std::uint64_t state = corpus.seed;
  family_ = next_random(state);
}

std::uint32_t SyntheticDocuments::draw_length(std::uint64_t& state) const noexcept {
  const double uniform = static_cast<double>(next_random(state) >> 11) * 0x1p-53;
  const auto place = std::upper_bound(at_most_.begin(), at_most_.end() - 1, uniform);
  return kLengthLeast + static_cast<std::uint32_t>(place - at_most_.begin());
}

void SyntheticDocuments::words(std::uint32_t number, std::vector<std::uint32_t>& words) const {
  // Sequences of neighbouring documents must not overlap, so their starts are random themselves.
  std::uint64_t start = family_ + (std::uint64_t{number} + 1) * 0xD1342543DE82EF95ULL;
  std::uint64_t state = next_random(start);
  words.clear();
  std::uint32_t missing = draw_length(state);
  while (missing != 0 || words.size() < 2) {
    for (; missing != 0; --missing) words.push_back(law_.draw(state));
    std::sort(words.begin(), words.end());
    words.erase(std::unique(words.begin(), words.end()), words.end());
    if (words.size() < 2) missing = 1;
  }
}

}  // namespace headrace::operators
