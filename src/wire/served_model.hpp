#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "headrace/wire/model.hpp"
#include "wire/counters.hpp"

namespace headrace::wire {

/// A model and what has been asked of it. Any thread.
struct ServedModel {
  ServedModel(Model served, std::size_t at) : model(std::move(served)), index(at) {}

  const Model model;
  const std::size_t index;  ///< Among the server's models.
  /// One for each thread that serves it, which writes to it. None is added once the threads have started.
  std::deque<ModelCounters> counters;

  /// Whether it takes queries.
  [[nodiscard]] bool ready() const noexcept { return !model.engine->stopped() && !model.engine->fault(); }
  /// The sum of all threads' counters.
  [[nodiscard]] ModelStatistics statistics() const;
};

/// The models of a server.
class Models {
 public:
  /// Throws UsageError for models that cannot be served, or two of one name.
  explicit Models(std::vector<Model> models);

  /// Null for a name that there is not.
  [[nodiscard]] ServedModel* find(std::string_view name) const noexcept;
  [[nodiscard]] const std::vector<std::unique_ptr<ServedModel>>& all() const noexcept { return models_; }
  [[nodiscard]] bool ready() const noexcept;

 private:
  std::vector<std::unique_ptr<ServedModel>> models_;
};

}  // namespace headrace::wire
