#include "operators/retrieval/synthetic.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "headrace/base/error.hpp"
#include "headrace/device/detail/host_memory.hpp"
#include "operators/parallel.hpp"
#include "operators/retrieval/index_format.hpp"
#include "operators/retrieval/synthetic_documents.hpp"

namespace headrace::operators {

namespace {

constexpr std::uint64_t kBatch = 8192;  ///< Documents between checks of the stop token.

/// Without this check, the system could grant memory that does not exist, and kill the process later.
void require_memory(std::uint64_t bytes) {
  const std::size_t available = host_memory().free_bytes;
  if (bytes <= available) return;
  constexpr double kGib = 1 << 30;
  throw SystemError(Errc::out_of_memory,
                    fmt::format("a synthetic index of this size takes {:.1f} GiB of memory, but only {:.1f} are "
                                "available; ask for fewer or shorter documents",
                                static_cast<double>(bytes) / kGib, static_cast<double>(available) / kGib));
}

}  // namespace

/// Counting sort without stored input: documents are made twice, once to count their terms and once to place them by
/// these counts. Each thread has a range of documents, whose postings come before those of the next thread in each
/// list.
class SyntheticIndexer {
 public:
  SyntheticIndexer(const SyntheticCorpus& corpus, const SyntheticRun& run)
      : corpus_(corpus),
        run_(run),
        documents_(corpus),
        threads_(thread_count(corpus.documents, kBatch, run.threads)),
        digits_(std::to_string(corpus.terms).size()) {
    require_memory(static_cast<std::uint64_t>(corpus.documents * (corpus.length - 1) * sizeof(std::uint32_t)) +
                   std::uint64_t{corpus.terms} * sizeof(std::uint32_t) * threads_);
    places_.resize(threads_);
    begins_.resize(corpus.terms + std::size_t{1});
  }

  Index index() {
    in_parallel(threads_, [&](std::uint32_t thread) { count(thread); });
    const std::uint32_t used = turn_counts_into_places();
    const std::uint64_t word_bytes = 1 + digits_;
    if (used * word_bytes > std::numeric_limits<std::uint32_t>::max()) {
      throw DataError("an index holds at most 4 GiB of distinct terms");
    }
    const IndexHeader header = plan_index({corpus_.documents, used, used * word_bytes, begins_.back()}, TextRules{});
    require_memory(header.file_bytes);
    auto words = std::make_shared<std::vector<std::uint64_t>>(header.file_bytes / sizeof(std::uint64_t));
    auto* const file = reinterpret_cast<std::byte*>(words->data());
    std::memcpy(file, &header, header.header_bytes);
    const auto at = [&](std::size_t which) { return file + header.section(which).offset; };
    write_terms(reinterpret_cast<std::uint32_t*>(at(kTermBegins)), reinterpret_cast<char*>(at(kPool)),
                reinterpret_cast<std::uint64_t*>(at(kPostingBegins)));
    auto* const postings = reinterpret_cast<std::uint32_t*>(at(kPostings));
    in_parallel(threads_, [&](std::uint32_t thread) { place(thread, postings); });
    seal_index({file, header.file_bytes});
    return Index(std::as_bytes(std::span(*words)), words, "the index just built");
  }

 private:
  /// Calls use(document, words) for each document of a thread's range.
  template <class Use>
  void for_each_document(std::uint32_t thread, double share_before, Use use) const {
    const Part part(corpus_.documents, thread, threads_);
    std::vector<std::uint32_t> words;
    for (std::uint64_t id = part.begin; id < part.end; ++id) {
      if (id % kBatch == 0) {
        if (run_.stop.stop_requested()) throw Exception(Errc::cancelled, "making a synthetic index: stopped");
        const double done = static_cast<double>(id - part.begin) / static_cast<double>(part.end - part.begin);
        if (thread == 0 && run_.progress) run_.progress(share_before + done / 2);
      }
      documents_.words(static_cast<std::uint32_t>(id), words);
      use(static_cast<std::uint32_t>(id), words);
    }
  }

  void count(std::uint32_t thread) {
    auto& counts = places_[thread];
    counts.resize(corpus_.terms);
    for_each_document(thread, 0, [&](std::uint32_t, const auto& words) {
      for (const std::uint32_t word : words) ++counts[word - 1];
    });
  }

  /// Turns the counts in places_ into each thread's start in a term's list. Returns the number of used terms.
  std::uint32_t turn_counts_into_places() {
    std::uint32_t used = 0;
    for (std::uint32_t term = 0; term < corpus_.terms; ++term) {
      std::uint32_t sum = 0;
      for (auto& places : places_) sum += std::exchange(places[term], sum);
      begins_[term + std::size_t{1}] = begins_[term] + sum;
      used += sum != 0 ? 1 : 0;
    }
    return used;
  }

  void write_terms(std::uint32_t* term_begins, char* pool, std::uint64_t* posting_begins) const {
    const auto word_bytes = static_cast<std::uint32_t>(1 + digits_);
    for (std::uint32_t term = 0; term < corpus_.terms; ++term) {
      if (begins_[term] == begins_[term + std::size_t{1}]) continue;
      pool = fmt::format_to(pool, "w{:0{}}", term + 1, digits_);
      term_begins[1] = term_begins[0] + word_bytes;
      ++term_begins;
      *++posting_begins = begins_[term + std::size_t{1}];
    }
  }

  void place(std::uint32_t thread, std::uint32_t* postings) {
    auto& places = places_[thread];
    for_each_document(thread, 0.5, [&](std::uint32_t document, const auto& words) {
      for (const std::uint32_t word : words) postings[begins_[word - 1] + places[word - 1]++] = document;
    });
  }

  const SyntheticCorpus& corpus_;
  const SyntheticRun& run_;
  SyntheticDocuments documents_;
  std::uint32_t threads_;
  std::size_t digits_;                              ///< Digits of a word's number.
  std::vector<std::vector<std::uint32_t>> places_;  ///< By thread and term: documents, then the next position.
  std::vector<std::uint64_t> begins_;               ///< The start of each term's list among the postings.
};

Index synthetic_index(const SyntheticCorpus& corpus, const SyntheticRun& run) {
  return SyntheticIndexer(corpus, run).index();
}

}  // namespace headrace::operators
