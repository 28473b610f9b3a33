#include "fetch/known_columns.hpp"

#include <utility>

#include "fetch/host_chunk.hpp"
#include "fetch/scan/look.hpp"

namespace headrace::fetch {

namespace {

/// Takes a look() at some columns of a view, by their position in it.
void look_at(StreamRef stream, const std::vector<std::uint32_t>& unknown, TableView& view) {
  TableView part;
  for (const std::uint32_t c : unknown) part.columns.push_back(view.columns[c]);
  for (const auto& fragment : view.fragments) {
    auto& of_part = part.fragments.emplace_back();
    for (const std::uint32_t c : unknown) of_part.push_back(fragment[c]);
  }
  look(stream, part);
  for (std::size_t i = 0; i < unknown.size(); ++i) view.columns[unknown[i]] = part.columns[i];
}

}  // namespace

TableView KnownColumns::view_of(const Need& need, const Fetch* fetch) const {
  TableView view;
  for (std::size_t c = 0; c < need.columns.size(); ++c) {
    const std::uint32_t number = need.columns[c];
    const Column& column = source_->column_of(number);
    const DataType type = level_type(source_->type_of(number));
    ColumnFacts facts{.name = column.name, .type = type, .nullable = column.nullable, .range = {}};
    if (const auto& known = known_[number]) {
      facts.nullable = known->nullable;
      facts.range = known->range;
    }
    facts.dictionary = need.dictionaries[c].get();
    view.columns.push_back(std::move(facts));
  }
  for (std::size_t f = 0; fetch != nullptr && f < fetch->request().fragments.size(); ++f) {
    auto& fragment = view.fragments.emplace_back();
    fragment.reserve(need.columns.size());
    for (std::size_t c = 0; c < need.columns.size(); ++c) fragment.push_back(fetch->view(c, f));
  }
  return view;
}

void KnownColumns::learn(StreamRef stream, const Need& need, TableView& view) {
  std::vector<std::uint32_t> unknown;
  for (std::uint32_t c = 0; c < need.columns.size(); ++c) {
    if (view.columns[c].dictionary != nullptr) {
      learn_indices(view, c);
    } else if (!known_[need.columns[c]]) {
      unknown.push_back(c);
    }
  }
  if (!unknown.empty()) look_at(stream, unknown, view);
  if (need.fragments.size() == view.fragments.size()) keep(need, view);
}

void KnownColumns::keep(const Need& need, const TableView& view) {
  if (need.fragments.size() != source_->fragments().size()) return;
  for (std::size_t c = 0; c < need.columns.size(); ++c) {
    known_[need.columns[c]] = Known{.nullable = view.columns[c].nullable, .range = view.columns[c].range};
  }
}

}  // namespace headrace::fetch
