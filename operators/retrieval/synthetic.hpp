#pragma once

#include <cstdint>
#include <functional>
#include <stop_token>

#include "headrace/operators/index.hpp"

namespace headrace::operators {

/// A corpus that is made up: each document is a sequence of words that are independent of each other and follow Zipf's
/// law. Word k of the vocabulary, counted from 1 and in order of frequency, is written "w" and k with leading zeros, so
/// that terms are numbered in that order too.
struct SyntheticCorpus {
  std::uint32_t documents = 10'000'000;
  std::uint32_t terms = 1'000'000;  ///< Terms of the vocabulary; those in no document are not in the index. At least 2.
  /// Mean number of words of a document, repetitions counted: 2 and a Poisson variate. 2 to 500. A document has at
  /// least 2 different terms: where its words are all the same, more are drawn.
  double length = 10;
  double exponent = 1;  ///< The exponent of Zipf's law, 0 to 4.
  std::uint64_t seed = 1;
};

/// How synthetic_index() goes about it, which does not change the result.
struct SyntheticRun {
  std::uint32_t threads = 0;  ///< 0 for as many as the machine has.
  std::stop_token stop = {};
  std::function<void(double)> progress = {};  ///< Called with the share done, 0 to 1, by one thread.
};

/// The index of the corpus, the same bytes for any number of threads. No text is made. Takes the memory of the index
/// (4 bytes a posting and about 28 a term), 8 bytes a term and 4 a term and thread.
/// Throws UsageError naming what is out of range, SystemError (Errc::out_of_memory) when the machine has not that much
/// memory available, Exception (Errc::cancelled) when asked to stop.
[[nodiscard]] Index synthetic_index(const SyntheticCorpus& corpus, const SyntheticRun& run = {});

}  // namespace headrace::operators
