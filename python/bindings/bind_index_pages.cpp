#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <span>
#include <string_view>

#include "arrays.hpp"
#include "bindings.hpp"
#include "index_pages.hpp"

namespace nb = nanobind;

namespace headrace::python {

namespace {

template <class T, class Member>
Array1d<T> column(const Ranking& ranking, Member member) {
  auto values = make_values<T>(ranking.documents.size());
  std::ranges::transform(ranking.documents, values.get(), member);
  return to_numpy(std::move(values), ranking.documents.size());
}

}  // namespace

Hits hits_of(const operators::RetrievalAnswer& answer) {
  const auto* end = std::ranges::find(answer.ids, operators::kNoDocument);
  return {answer.hits, {std::begin(answer.ids), end}};
}

void bind_index_pages(nb::module_& module) {
  nb::class_<Hits>(module, "Hits", "The answer to a Boolean query.")
      .def_ro("hits", &Hits::hits, "The number of matching documents, listed or not.")
      .def_ro("ids", &Hits::ids, "The matching ids of the page, ascending.")
      .def_ro("offset", &Hits::offset, "The position of the first of them among all matches, from 0.")
      .def(
          "__eq__", [](const Hits& a, const Hits& b) { return a == b; }, nb::is_operator(),
          nb::sig("def __eq__(self, other: object, /) -> bool"))
      .def("__hash__",
           [](const Hits& hits) {
             const auto ids = std::as_bytes(std::span(hits.ids));
             return std::hash<std::string_view>{}({reinterpret_cast<const char*>(ids.data()), ids.size()}) ^ hits.hits;
           })
      .def("__repr__", [](const Hits& hits) {
        const std::string offset = hits.offset != 0 ? fmt::format(", offset={}", hits.offset) : "";
        return fmt::format("Hits(hits={}, ids=[{}]{})", hits.hits, fmt::join(hits.ids, ", "), offset);
      });
  nb::class_<Ranking>(module, "Ranking", "The documents that match a query, the most relevant first.")
      .def_ro("hits", &Ranking::hits, "The number of matching documents, listed or not.")
      .def_prop_ro(
          "ids", [](const Ranking& ranking) { return column<std::uint32_t>(ranking, &operators::RankedDocument::id); },
          nb::rv_policy::move, "The ids of the page.")
      .def_prop_ro(
          "scores", [](const Ranking& ranking) { return column<double>(ranking, &operators::RankedDocument::score); },
          nb::rv_policy::move, "Their BM25 scores, descending. Documents of equal score are in the order of their ids.")
      .def("__repr__", [](const Ranking& ranking) {
        return fmt::format("<headrace.operators.Ranking: {} documents of {}>", ranking.documents.size(), ranking.hits);
      });
}

}  // namespace headrace::python
