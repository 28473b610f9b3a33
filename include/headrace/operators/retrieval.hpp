#pragma once

// retrieval() is an operator that finds the documents of an Index which satisfy an expression of AND, OR and NOT.
//
//     auto index = std::make_shared<const headrace::operators::Index>(headrace::operators::Index::load("words.hridx"));
//     headrace::serve::Operator retrieval = headrace::operators::retrieval(index);
//     headrace::operators::RetrievalQuery query = index->compile("fox AND NOT dog");
//     headrace::operators::RetrievalAnswer answer{};
//     headrace::serve::LoadedState state = retrieval.load(headrace::Device::parse("cpu"));
//     headrace::serve::answer_here(retrieval, state, std::as_bytes(std::span(&query, 1)).data(),
//                                  std::as_writable_bytes(std::span(&answer, 1)).data());

#include <cstdint>
#include <memory>
#include <string>

#include "headrace/operators/detail/retrieval_evaluate.hpp"
#include "headrace/operators/detail/retrieval_query.hpp"
#include "headrace/operators/index.hpp"
#include "headrace/serve/operator.hpp"

namespace headrace::operators {

/// The Boolean model of information retrieval (Manning, Raghavan, Schütze, Introduction to Information Retrieval,
/// chapter 1): which documents satisfy an expression of AND, OR and NOT over terms. One block answers a query with the
/// number of matching documents and the smallest of their ids.
struct Retrieval {
  static constexpr const char* kName = "retrieval";  ///< For make_operator().

  using Query = RetrievalQuery;     ///< Made by Index::compile().
  using Answer = RetrievalAnswer;   ///< The number of matches, and the first of them.
  using State = boolean::Postings;  ///< The index in a device's memory.

  /// Answers one query with one block.
  template <class Group>
  HEADRACE_HD static void answer(Group group, const State& state, const Query* query, Answer* answer) {
    auto& scratch = group.template shared<boolean::Scratch>();
    boolean::stage_query(group, state, *query, scratch);
    boolean::answer_query(group, state, scratch, *answer);
  }
};

/// How retrieval() runs, and whether it has samples.
struct RetrievalOptions {
  std::uint32_t threads = 128;  ///< Threads of the one block that answers a query: 32 to 1024.
  /// Whether the operator has Operator::sample, for which it keeps each document's terms in host memory, 4 bytes per
  /// posting.
  bool sample = true;
};

/// The operator over `index`, which it keeps. Its samples are those of RetrievalSampler. Throws UsageError naming the
/// first option out of range.
[[nodiscard]] serve::Operator retrieval(std::shared_ptr<const Index> index, const RetrievalOptions& options = {});

/// An endless, reproducible sequence of queries as people pose them: 2 to 4 different terms of one random document,
/// joined as
///   50%  a AND b [AND c [AND d]]
///   20%  a OR b [OR c [OR d]]
///   15%  a [AND b [AND c]] AND NOT d
///   15%  with parentheses: (a OR b) AND c [AND NOT d], or a AND NOT b where the document has only two terms
/// Every term of the document is equally likely, so frequent words are frequent in queries as well. The words and, or,
/// not, which are operators of the query language, are left out.
class RetrievalSampler {
 public:
  /// Lists the terms of each document of `index`, which it keeps.
  explicit RetrievalSampler(std::shared_ptr<const Index> index);
  ~RetrievalSampler();
  RetrievalSampler(RetrievalSampler&&) noexcept;
  RetrievalSampler& operator=(RetrievalSampler&&) noexcept;

  /// Query number `number`, with its tag set to number + 1. Any thread.
  [[nodiscard]] RetrievalQuery query(std::uint64_t number) const;
  /// The text that compiles to that query, apart from the tag. If the index stems words, the text consists of stems,
  /// and compiling stems them again, which changes a few.
  [[nodiscard]] std::string text(std::uint64_t number) const;

 private:
  struct Forward;
  std::shared_ptr<const Index> index_;
  std::unique_ptr<const Forward> forward_;
};

}  // namespace headrace::operators
