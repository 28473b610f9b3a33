#include "wire/served_model.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "headrace/base/error.hpp"

namespace headrace::wire {

Models::Models(std::vector<Model> models) {
  if (models.empty()) throw UsageError("a server needs a model to serve");
  for (Model& model : models) {
    check_model(model);
    if (find(model.name) != nullptr) throw UsageError(fmt::format("two models are called '{}'", model.name));
    models_.push_back(std::make_unique<ServedModel>(std::move(model), models_.size()));
  }
}

ServedModel* Models::find(std::string_view name) const noexcept {
  const auto found = std::ranges::find_if(models_, [&](const auto& served) { return served->model.name == name; });
  return found == models_.end() ? nullptr : found->get();
}

bool Models::ready() const noexcept {
  return std::ranges::all_of(models_, [](const auto& served) { return served->ready(); });
}

}  // namespace headrace::wire
