#pragma once

#include <cstdint>
#include <functional>
#include <stop_token>

#include "headrace/operators/index.hpp"

namespace headrace::operators {

/// A synthetic corpus. Each document is a sequence of independent words that follow Zipf's law. Word k of the
/// vocabulary, counted from 1 in order of frequency, is written as "w" and k with leading zeros, so terms are numbered
/// in the same order.
struct SyntheticCorpus {
  std::uint32_t documents = 10'000'000;
  std::uint32_t terms = 1'000'000;  ///< Terms of the vocabulary, at least 2. Terms that no document has are not in the
                                    ///< index.
  /// Mean number of words in a document, including repetitions, 2 to 500: 2 plus a Poisson variate. A document has at
  /// least 2 distinct terms: if all its words are the same, more are drawn.
  double length = 10;
  double exponent = 1;  ///< The exponent of Zipf's law, 0 to 4.
  std::uint64_t seed = 1;
};

/// How synthetic_index() runs. It does not affect the result.
struct SyntheticRun {
  std::uint32_t threads = 0;  ///< 0 for as many as the machine has.
  std::stop_token stop = {};
  std::function<void(double)> progress = {};  ///< Called by one thread with the completed fraction, 0 to 1.
};

/// The index of the corpus, with the same bytes for any number of threads. No text is made. Takes the memory of the
/// index (4 bytes a posting and about 28 a term), 8 bytes a term and 4 a term and thread. Throws UsageError naming the
/// option out of range, SystemError (Errc::out_of_memory) if the machine does not have that much memory available, and
/// Exception (Errc::cancelled) when stopped.
[[nodiscard]] Index synthetic_index(const SyntheticCorpus& corpus, const SyntheticRun& run = {});

}  // namespace headrace::operators
