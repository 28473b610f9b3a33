#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "headrace/operators/retrieval.hpp"
#include "operators/parallel.hpp"
#include "operators/retrieval/compiler.hpp"
#include "operators/retrieval/query_parser.hpp"
#include "operators/sample.hpp"

namespace headrace::operators {

namespace {

constexpr std::size_t kSampleTermsMax = 4;
constexpr int kTriesMax = 64;
constexpr std::uint64_t kSampledPostingsAThread = 1U << 20;

/// How a sample joins its terms.
enum class Form : std::uint8_t { conjunction, disjunction, exclusion, grouped };

Form pick_form(std::uint64_t random) noexcept {
  const std::uint64_t percent = random % 100;
  if (percent < 50) return Form::conjunction;
  if (percent < 70) return Form::disjunction;
  return percent < 85 ? Form::exclusion : Form::grouped;
}

/// A sample before it becomes a query or a text.
struct Sample {
  std::array<std::uint32_t, kSampleTermsMax> terms{};
  std::uint32_t count = 0;
  Form form = Form::conjunction;

  /// Whether the term at `i` follows NOT.
  [[nodiscard]] bool negated(std::uint32_t i) const noexcept {
    if (i + 1 != count || count < 2) return false;
    return form == Form::exclusion || (form == Form::grouped && count != 3);
  }
  /// Whether OR joins the term at `i` > 0 to the terms before it.
  [[nodiscard]] bool joined_by_or(std::uint32_t i) const noexcept {
    return form == Form::disjunction || (form == Form::grouped && i == 1 && count > 2);
  }
};

}  // namespace

/// The terms of each document, which an index does not store.
struct RetrievalSampler::Forward {
  std::vector<std::uint64_t> begins;
  std::vector<std::uint32_t> terms;

  /// Built by counting sort, with a range of documents in each thread.
  explicit Forward(const Index& index) : begins(std::size_t{index.document_count()} + 1) {
    const std::uint32_t threads = thread_count(index.posting_count(), kSampledPostingsAThread);
    const auto ids_of = [&](std::uint32_t thread, std::uint32_t term) {
      const Part documents(index.document_count(), thread, threads);
      const auto ids = index.postings(term);
      const auto begin = std::lower_bound(ids.begin(), ids.end(), documents.begin);
      return std::span(begin, std::lower_bound(begin, ids.end(), documents.end));
    };
    const auto for_each_posting = [&](std::uint32_t thread, auto use) {
      for (std::uint32_t term = 0; term < index.term_count(); ++term) {
        const auto word = index.term(term);
        if (word == "and" || word == "or" || word == "not") continue;
        for (const std::uint32_t id : ids_of(thread, term)) use(term, id);
      }
    };
    in_parallel(threads, [&](std::uint32_t thread) {
      for_each_posting(thread, [&](std::uint32_t, std::uint32_t id) { ++begins[id + std::size_t{1}]; });
    });
    for (std::size_t i = 1; i < begins.size(); ++i) begins[i] += begins[i - 1];
    terms.resize(begins.back());
    auto next = begins;
    in_parallel(threads, [&](std::uint32_t thread) {
      for_each_posting(thread, [&](std::uint32_t term, std::uint32_t id) { terms[next[id]++] = term; });
    });
  }

  /// Sample number `number`. It has no terms if 64 random documents had none.
  [[nodiscard]] Sample draw(std::uint64_t number) const noexcept {
    std::uint64_t state = (number + 1) * 0xD1342543DE82EF95ULL;
    Sample sample;
    for (int i = 0; i < kTriesMax && sample.count < 2; ++i) {
      const std::uint64_t document = next_random(state) % (begins.size() - 1);
      const std::uint64_t distinct = begins[document + 1] - begins[document];
      if (distinct == 0) continue;
      const std::uint64_t wanted = 2 + next_random(state) % 3;
      sample.count = static_cast<std::uint32_t>(std::min(wanted, distinct));
      pick(sample, document, distinct, state);
    }
    sample.form = pick_form(next_random(state));
    return sample;
  }

 private:
  /// Fills the sample with distinct terms of the document.
  void pick(Sample& sample, std::uint64_t document, std::uint64_t distinct, std::uint64_t& state) const noexcept {
    for (std::uint32_t i = 0; i < sample.count;) {
      const std::uint32_t term = terms[begins[document] + next_random(state) % distinct];
      bool taken = false;
      for (std::uint32_t j = 0; j < i; ++j) taken = taken || sample.terms[j] == term;
      if (!taken) sample.terms[i++] = term;
    }
  }
};

RetrievalSampler::RetrievalSampler(std::shared_ptr<const Index> index)
    : index_(std::move(index)), forward_(std::make_unique<const Forward>(*index_)) {}
RetrievalSampler::~RetrievalSampler() = default;
RetrievalSampler::RetrievalSampler(RetrievalSampler&&) noexcept = default;
RetrievalSampler& RetrievalSampler::operator=(RetrievalSampler&&) noexcept = default;

RetrievalQuery RetrievalSampler::query(std::uint64_t number) const {
  const Sample sample = forward_->draw(number);
  std::array<QueryTerm, kSampleTermsMax> terms{};
  std::array<ExpressionNode, 3 * kSampleTermsMax> nodes{};
  std::uint32_t size = 0;
  const auto add = [&](ExpressionNode node) {
    nodes[size] = node;
    return size++;
  };
  std::uint32_t root = 0;
  for (std::uint32_t i = 0; i < sample.count; ++i) {
    const std::uint32_t id = sample.terms[i];
    terms[i] = {id, static_cast<std::uint32_t>(index_->postings(id).size())};
    std::uint32_t operand = add({ExpressionKind::term, i});
    if (sample.negated(i)) operand = add({ExpressionKind::negation, operand});
    const auto join = sample.joined_by_or(i) ? ExpressionKind::disjunction : ExpressionKind::conjunction;
    root = i == 0 ? operand : add({join, root, operand});
  }
  if (size == 0) add({ExpressionKind::term, 0});  // a term that no document has
  RetrievalQuery query = compile_query({nodes.data(), size}, terms, index_->document_count());
  query.tag = number + 1;
  return query;
}

std::string RetrievalSampler::text(std::uint64_t number) const {
  const Sample sample = forward_->draw(number);
  if (sample.count == 0) return "nothing";
  std::string text;
  for (std::uint32_t i = 0; i < sample.count; ++i) {
    if (i > 0) text += sample.joined_by_or(i) ? " OR " : " AND ";
    if (sample.negated(i)) text += "NOT ";
    text += index_->term(sample.terms[i]);
    if (sample.form == Form::grouped && sample.count > 2 && i == 1) text = fmt::format("({})", text);
  }
  return text;
}

}  // namespace headrace::operators
