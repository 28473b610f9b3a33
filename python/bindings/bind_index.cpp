#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/function.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include "arrays.hpp"
#include "bindings.hpp"
#include "convert.hpp"
#include "gil.hpp"
#include "headrace/operators/retrieval.hpp"
#include "headrace/serve/engine.hpp"
#include "index_pages.hpp"
#include "interrupt.hpp"
#include "operators/retrieval/brute_force.hpp"
#include "operators/retrieval/synthetic.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace headrace::python {

namespace {

using operators::BruteForce;
using operators::Index;
using operators::IndexBuilder;
using operators::IndexContents;
using operators::RetrievalAnswer;
using operators::RetrievalQuery;

/// The UTF-8 bytes of a str, or the bytes of a bytes object; valid as long as the object.
std::string_view text_of(nb::handle document) {
  if (PyBytes_Check(document.ptr()) != 0) {
    return {PyBytes_AsString(document.ptr()), static_cast<std::size_t>(PyBytes_Size(document.ptr()))};
  }
  Py_ssize_t bytes = 0;
  const char* text = PyUnicode_Check(document.ptr()) != 0 ? PyUnicode_AsUTF8AndSize(document.ptr(), &bytes) : nullptr;
  if (text != nullptr) return {text, static_cast<std::size_t>(bytes)};
  if (PyErr_Occurred() != nullptr) {
    PyErr_Clear();
    throw DataError("it has a lone surrogate, which UTF-8 does not allow");
  }
  const nb::str type = nb::repr(document.type());
  throw nb::type_error(fmt::format("a document must be str or bytes, not {}", type.c_str()).c_str());
}

/// A count of a synthetic corpus, which C++ stores in 32 bits.
std::uint32_t to_count(std::string_view name, std::uint64_t count) {
  if (count <= std::numeric_limits<std::uint32_t>::max()) return static_cast<std::uint32_t>(count);
  throw UsageError(fmt::format("synthetic corpus: {} must be less than 2^32, not {}", name, count));
}

std::uint32_t add_document(IndexBuilder& builder, nb::handle document) {
  std::string_view text;
  try {
    text = text_of(document);
  } catch (const DataError& error) {
    throw DataError(fmt::format("document {}: {}", builder.document_count(), error.what()));
  }
  return builder.add(text);
}

void add_many(IndexBuilder& builder, const nb::iterable& documents) {
  for (const nb::handle document : documents) add_document(builder, document);
}

/// A query's text.
std::string_view query_of(nb::handle text) {
  if (PyUnicode_Check(text.ptr()) == 0) throw nb::type_error("a query must be a str");
  try {
    return text_of(text);
  } catch (const DataError& error) {
    throw UsageError(fmt::format("query: {}", error.what()));
  }
}

operators::TextRules rules_of(bool fold_diacritics, std::optional<std::string> stem) {
  if (stem && stem->empty()) throw UsageError("stemming: the name of the language is empty; use None for no stemming");
  return {.fold_diacritics = fold_diacritics, .stem = std::move(stem).value_or("")};
}

IndexContents contents_of(bool frequencies) {
  return frequencies ? IndexContents::frequencies : IndexContents::documents;
}

Index build(const nb::iterable& documents, bool fold_diacritics, bool frequencies, std::optional<std::string> stem) {
  IndexBuilder builder(rules_of(fold_diacritics, std::move(stem)), contents_of(frequencies));
  add_many(builder, documents);
  const GilRelease released;
  return builder.build();
}

/// Returns nothing if Ctrl-C stopped it; Python then raises KeyboardInterrupt.
Index synthetic(std::uint64_t documents, std::uint64_t terms, double length, double exponent, std::uint64_t seed,
                std::uint32_t threads, const std::optional<std::function<void(double)>>& progress) {
  const operators::SyntheticCorpus corpus{to_count("documents", documents), to_count("terms", terms), length, exponent,
                                          seed};
  Interruptible interruptible;
  const std::function<void(double)> on_progress =
      progress ? interruptible.guard(*progress) : std::function<void(double)>{};
  auto made = interruptible.run([&]() -> std::optional<Index> {
    try {
      return operators::synthetic_index(corpus, {threads, interruptible.token(), on_progress});
    } catch (const Exception& stopped) {
      if (stopped.code() == Errc::cancelled) return std::nullopt;
      throw;
    }
  });
  if (made) return *std::move(made);
  PyErr_SetNone(PyExc_KeyboardInterrupt);
  throw nb::python_error();
}

Bytes1d compile(const Index& index, nb::handle text) {
  const RetrievalQuery query = index.compile(query_of(text));
  auto bytes = make_values<std::uint8_t>(sizeof(query));
  std::memcpy(bytes.get(), &query, sizeof(query));
  return to_numpy(std::move(bytes), sizeof(query));
}

Bytes2d compile_many(const Index& index, const nb::sequence& texts) {
  const nb::list kept(texts);  // keeps the texts alive while they are read without the GIL
  std::vector<std::string_view> views;
  views.reserve(kept.size());
  for (const nb::handle text : kept) views.push_back(query_of(text));
  auto bytes = make_values<std::uint8_t>(views.size() * sizeof(RetrievalQuery));
  {
    const GilRelease released;
    // `new` returns memory that is aligned for a query.
    index.compile_many(views, {reinterpret_cast<RetrievalQuery*>(bytes.get()), views.size()});
  }
  return to_numpy(std::move(bytes), views.size(), sizeof(RetrievalQuery));
}

RetrievalAnswer ask_engine(const Index& index, const RetrievalQuery& compiled, Device device) {
  serve::Plan plan;
  plan.clients_max = 1;
  serve::Engine engine(device, operators::retrieval(std::make_shared<const Index>(index), {.sample = false}), plan);
  serve::Client client = engine.connect();
  RetrievalAnswer answer{};
  client.ask(std::as_bytes(std::span(&compiled, 1)), std::as_writable_bytes(std::span(&answer, 1)))
      .or_throw("asking the index");
  return answer;
}

/// Answers one query with a separate engine. The host finds matches that exceed the capacity of an answer.
Hits query(const Index& index, nb::handle text, const DeviceOrName& device, std::uint64_t offset, std::uint64_t limit) {
  const std::string_view words = query_of(text);
  const RetrievalQuery compiled = index.compile(words);
  const Device parsed = to_device(device);
  const GilRelease released;
  if (offset == 0 && limit <= operators::kAnswerIds) {
    Hits hits = hits_of(ask_engine(index, compiled, parsed));
    hits.ids.resize(std::min<std::size_t>(hits.ids.size(), limit));
    return hits;
  }
  operators::MatchPage page = index.page(words, {offset, limit});
  return {page.hits, std::move(page.ids), offset};
}

Ranking rank(const Index& index, nb::handle text, std::uint64_t offset, std::uint64_t limit, double k1, double b) {
  const std::string_view words = query_of(text);
  const GilRelease released;
  operators::RankedPage page = index.rank(words, {offset, limit}, {k1, b});
  return {page.hits, std::move(page.documents)};
}

Array1d<std::uint32_t> matches(const Index& index, std::string_view text) {
  std::vector<std::uint32_t> ids;
  {
    const GilRelease released;
    ids = index.matches(text);
  }
  auto copy = make_values<std::uint32_t>(ids.size());
  std::ranges::copy(ids, copy.get());
  return to_numpy(std::move(copy), ids.size());
}

Array1d<std::uint32_t> postings(const Index& index, std::string_view term) {
  const auto number = index.find(term);
  const auto ids = number ? index.postings(*number) : std::span<const std::uint32_t>{};
  auto copy = make_values<std::uint32_t>(ids.size());
  std::ranges::copy(ids, copy.get());
  return to_numpy(std::move(copy), ids.size());
}

void bind_class(nb::module_& module) {
  nb::class_<Index>(module, "Index",
                    "Records which documents have which terms. Immutable; made by build(), IndexBuilder or load().")
      .def_static(
          "build", &build, "documents"_a, nb::kw_only(), "fold_diacritics"_a = false, "frequencies"_a = false,
          "stem"_a = nb::none(),
          nb::sig("def build(documents: collections.abc.Iterable[str | bytes], *, fold_diacritics: bool = False, "
                  "frequencies: bool = False, stem: str | None = None) -> Index"),
          "Builds the index of documents, whose ids count from 0. Words are those of UAX #29, case-folded by NFKC; "
          "with `fold_diacritics` without accents, in documents and in queries. With `frequencies` it stores how often "
          "words occur, for rank(). With `stem`, one of stem_languages(), words are reduced to stems by Snowball, in "
          "documents and in queries. Raises DataError if there is no document or one is not UTF-8, and UsageError for "
          "an unknown language.")
      .def_static(
          "stem_languages", &operators::stem_languages,
          "The values of `stem`: the names of the algorithms of libstemmer; empty if Headrace was built without it.")
      .def_static("synthetic", &synthetic, nb::kw_only(), "documents"_a, "terms"_a, "length"_a = 10.0,
                  "exponent"_a = 1.0, "seed"_a = 1, "threads"_a = 0, "progress"_a = nb::none(),
                  "Builds the index of a synthetic corpus whose words are independent and follow Zipf's law; word k, "
                  "counted from 1 in order of frequency, is w and k with leading zeros. `length` is the mean number of "
                  "words of a document. The result is the same for any number of threads (0: all). Raises UsageError "
                  "for a value out of range, and SystemError if there is not enough memory: 4 bytes a posting, about "
                  "36 a term and 4 a term and thread.")
      .def_static("load", &Index::load, "path"_a, nb::call_guard<GilRelease>(),
                  nb::sig("def load(path: str | os.PathLike[str]) -> Index"),
                  "Maps or unpacks a file that save() wrote, and checks all of it. Raises SystemError if it cannot be "
                  "read, and DataError that names the defect.")
      .def(
          "save",
          [](const Index& index, const std::filesystem::path& path, bool packed) {
            const GilRelease released;
            index.save(path, raise_signals, packed ? operators::IndexFile::packed : operators::IndexFile::mapped);
          },
          "path"_a, nb::kw_only(), "packed"_a = false,
          nb::sig("def save(self, path: str | os.PathLike[str], *, packed: bool = False) -> None"),
          "Writes the file completely or not at all. With `packed` it is about a third as large, and load() unpacks it "
          "into memory instead of mapping it.")
      .def("compile", &compile, "text"_a, nb::sig("def compile(self, text: str) -> NDArray[numpy.uint8]"),
           "Compiles a query into the 240 bytes that retrieval(index) takes. Words are split like documents; "
           "\"quoted\" ones are never operators; AND, OR, NOT in any case; parentheses; adjacent words mean AND. At "
           "most 32 terms and 64 levels of parentheses. Raises UsageError with the position of the error.")
      .def("compile_many", &compile_many, "texts"_a,
           nb::sig("def compile_many(self, texts: collections.abc.Sequence[str]) -> NDArray[numpy.uint8]"),
           "The same for many queries, one row each, with as many threads as pay.")
      .def("query", &query, "text"_a, nb::kw_only(), "device"_a = "best", "offset"_a = 0,
           "limit"_a = operators::kAnswerIds,
           nb::sig("def query(self, text: str, *, device: Device | str = 'best', offset: int = 0, limit: int = 15) "
                   "-> Hits"),
           "The number of matching documents, and the ids of a page of them: at most `limit`, from number `offset` on. "
           "The first 15 are found by a separate engine on the device; every other page is found on the host. For many "
           "queries, keep an Engine.")
      .def("rank", &rank, "text"_a, nb::kw_only(), "offset"_a = 0, "limit"_a = operators::kAnswerIds,
           "k1"_a = operators::Bm25{}.k1, "b"_a = operators::Bm25{}.b,
           nb::sig("def rank(self, text: str, *, offset: int = 0, limit: int = 15, k1: float = 1.2, b: float = 0.75) "
                   "-> Ranking"),
           "The matching documents, the most relevant first by BM25, found on the host. Terms that are not negated "
           "count. Raises UsageError if the index has no frequencies.")
      .def("matches", &matches, "text"_a,
           "The ids of all documents that satisfy a query, ascending, found on the host; an answer of the operator "
           "only counts them. Raises UsageError as compile() does.")
      .def("postings", &postings, "term"_a,
           "The ids of the documents that have the term (lower case, stemmed), ascending.")
      .def_prop_ro(
          "words",
          [](const Index& index) {
            return index.text_rules().words == operators::TextRules::Words::ascii ? "ascii" : "unicode";
          },
          "How text is split into words: unicode, or ascii in an index from a file of version 1.")
      .def_prop_ro(
          "fold_diacritics", [](const Index& index) { return index.text_rules().fold_diacritics; },
          "Whether accents are removed.")
      .def_prop_ro(
          "stem",
          [](const Index& index) -> std::optional<std::string> {
            const std::string& stem = index.text_rules().stem;
            return stem.empty() ? std::nullopt : std::optional(stem);
          },
          "The language whose rules stem words, or None.")
      .def_prop_ro("frequencies", &Index::has_frequencies, "Whether it stores how often words occur, for rank().")
      .def_prop_ro("document_count", &Index::document_count)
      .def_prop_ro("term_count", &Index::term_count)
      .def_prop_ro("posting_count", &Index::posting_count)
      .def("__repr__", [](const Index& index) {
        return fmt::format("<headrace.Index: {} documents, {} terms, {} postings>", index.document_count(),
                           index.term_count(), index.posting_count());
      });
}

void bind_helpers(nb::module_& module) {
  nb::class_<IndexBuilder>(module, "IndexBuilder", "Builds an index from documents given one after the other.")
      .def(
          "__init__",
          [](IndexBuilder* self, bool fold_diacritics, bool frequencies, std::optional<std::string> stem) {
            new (self) IndexBuilder(rules_of(fold_diacritics, std::move(stem)), contents_of(frequencies));
          },
          nb::kw_only(), "fold_diacritics"_a = false, "frequencies"_a = false, "stem"_a = nb::none())
      .def("add", &add_document, "document"_a, nb::sig("def add(self, document: str | bytes) -> int"),
           "Adds a document and returns its id. Raises DataError that names the byte that is not UTF-8, and adds "
           "nothing then.")
      .def("add_many", &add_many, "documents"_a,
           nb::sig("def add_many(self, documents: collections.abc.Iterable[str | bytes]) -> None"),
           "Adds documents up to the first that raises.")
      .def_prop_ro("document_count", &IndexBuilder::document_count)
      .def("build", &IndexBuilder::build, nb::call_guard<GilRelease>(),
           "Builds the index of all documents added, and empties the builder. Raises DataError if there is none.");
  nb::class_<BruteForce>(
      module, "BruteForce",
      "Answers Boolean queries in the slow, obvious way, by looking at every document, to verify an engine's answers.")
      .def(
          "__init__",
          [](BruteForce* self, const std::vector<std::string>& documents, bool fold_diacritics,
             std::optional<std::string> stem) {
            const GilRelease released;
            new (self) BruteForce(documents, rules_of(fold_diacritics, std::move(stem)));
          },
          "documents"_a, nb::kw_only(), "fold_diacritics"_a = false, "stem"_a = nb::none(),
          "Raises DataError if a document is not UTF-8.")
      .def(
          "answer",
          [](const BruteForce& brute, std::string_view text) {
            const GilRelease released;
            return hits_of(brute.answer(text));
          },
          "text"_a, "Raises UsageError if Index.compile() would.");
  nb::class_<operators::RetrievalSampler>(module, "RetrievalSampler",
                                          "An endless, reproducible sequence of Boolean queries drawn from an index.")
      .def(
          "__init__",
          [](operators::RetrievalSampler* self, const Index& index) {
            const GilRelease released;
            new (self) operators::RetrievalSampler(std::make_shared<const Index>(index));
          },
          "index"_a)
      .def("text", &operators::RetrievalSampler::text, "number"_a,
           "The text of query `number`, as a person would write it.");
}

}  // namespace

void bind_index(nb::module_& module) {
  bind_class(module);
  bind_helpers(module);
}

}  // namespace headrace::python
