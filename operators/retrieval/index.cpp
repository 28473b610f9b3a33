#include "headrace/operators/index.hpp"

#include <fmt/format.h>

#include <cstring>
#include <numeric>
#include <utility>
#include <vector>

#include "base/output_file.hpp"
#include "headrace/base/detail/guarded_range.hpp"
#include "headrace/base/error.hpp"
#include "operators/parallel.hpp"
#include "operators/retrieval/compiler.hpp"
#include "operators/retrieval/file.hpp"
#include "operators/retrieval/index_format.hpp"
#include "operators/retrieval/packed_index.hpp"
#include "operators/retrieval/query_parser.hpp"
#include "operators/retrieval/term_slots.hpp"

namespace headrace::operators {

namespace {

/// Starting a thread takes about as long as compiling 50 queries.
constexpr std::uint64_t kQueriesAThread = 500;

}  // namespace

Index::Index(std::span<const std::byte> bytes, std::shared_ptr<const void> owner, std::string_view name)
    : bytes_(bytes), owner_(std::move(owner)) {
  const IndexSections sections = read_index(bytes, name);
  term_begins_ = sections.term_begins.data();
  posting_begins_ = sections.posting_begins.data();
  postings_ = sections.postings.data();
  pool_ = sections.pool.data();
  if (sections.header.contents == static_cast<std::uint8_t>(IndexContents::frequencies)) {
    lengths_ = sections.lengths.data();
    frequencies_ = sections.frequencies.data();
    const double terms = std::accumulate(sections.lengths.begin(), sections.lengths.end(), 0.0);
    mean_length_ = terms / static_cast<double>(sections.lengths.size());
  }
  document_count_ = sections.header.document_count;
  term_count_ = sections.header.term_count;
  slots_ = std::make_shared<const TermSlots>(term_count_, [this](std::uint32_t number) { return term(number); });
  rules_ = rules_of(sections.header);
}

Index Index::load(const std::filesystem::path& path) {
  const MappedFile file = map_file(path);
  // During the check, a file that another process truncates causes an error instead of a SIGBUS.
  const GuardedRange guard(file.bytes.data(), file.bytes.size());
  try {
    Index index =
        is_packed(file.bytes) ? unpacked(file.bytes, path.string()) : Index(file.bytes, file.owner, path.string());
    if (!guard.lost()) return index;
  } catch (const DataError&) {
    if (!guard.lost()) throw;
  }
  throw DataError(fmt::format("{} was cut short while it was read", path.string()));
}

Index Index::unpacked(std::span<const std::byte> bytes, std::string_view name) {
  auto image = std::make_shared<const std::vector<std::uint64_t>>(unpack_index(bytes, name));
  const auto view = std::as_bytes(std::span(*image));
  return Index(view, std::move(image), name);
}

Index Index::from_bytes(std::span<const std::byte> bytes, std::string_view name) {
  if (is_packed(bytes)) return unpacked(bytes, name);
  auto copy = std::make_shared<std::vector<std::uint64_t>>((bytes.size() + 7) / 8);  // aligned as sections require
  if (!bytes.empty()) std::memcpy(copy->data(), bytes.data(), bytes.size());
  const std::span<const std::byte> view(reinterpret_cast<const std::byte*>(copy->data()), bytes.size());
  return Index(view, std::move(copy), name);
}

void Index::save(const std::filesystem::path& path, const std::function<void()>& interrupted, IndexFile form) const {
  if (form == IndexFile::mapped) return write_output(path, bytes_, interrupted);
  write_output(path, pack_index(bytes_, read_index(bytes_, "the index")), interrupted);
}

std::optional<std::uint32_t> Index::find(std::string_view wanted) const noexcept {
  const std::uint32_t found = slots_->find(wanted, [&](std::uint32_t number) { return term(number) == wanted; });
  return found == 0 ? std::nullopt : std::optional(found - 1);
}

RetrievalQuery Index::compile(std::string_view text) const {
  const Expression expression = parse_query(text, rules_);
  std::vector<QueryTerm> terms;
  terms.reserve(expression.terms.size());
  for (const auto& word : expression.terms) {
    const auto id = find(word);
    terms.push_back(id ? QueryTerm{*id, static_cast<std::uint32_t>(postings(*id).size())} : QueryTerm{});
  }
  return compile_query(expression.nodes, terms, document_count_);
}

void Index::compile_many(std::span<const std::string_view> texts, std::span<RetrievalQuery> queries) const {
  if (texts.size() != queries.size()) {
    throw UsageError(
        fmt::format("compiling {} queries needs as many places for results, not {}", texts.size(), queries.size()));
  }
  const std::uint32_t threads = thread_count(texts.size(), kQueriesAThread);
  in_parallel(threads, [&](std::uint32_t thread) {
    const Part part(texts.size(), thread, threads);
    for (std::uint64_t i = part.begin; i < part.end; ++i) queries[i] = compile(texts[i]);
  });
}

}  // namespace headrace::operators
