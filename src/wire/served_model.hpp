#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "headrace/wire/model.hpp"

namespace headrace::wire {

/// A count of requests and the time that they took, for statistics.
struct Tally {
  std::atomic<std::uint64_t> count{0};
  std::atomic<std::uint64_t> nanoseconds{0};

  void add(Duration duration) noexcept {
    count.fetch_add(1, std::memory_order_relaxed);
    nanoseconds.fetch_add(static_cast<std::uint64_t>(duration.count()), std::memory_order_relaxed);
  }
};

/// A model and what has been asked of it. Any thread.
struct ServedModel {
  ServedModel(Model served, std::size_t at) : model(std::move(served)), index(at) {}

  const Model model;
  const std::size_t index;  ///< Among the server's models.
  Tally succeeded;          ///< Requests, from read to answered.
  Tally failed;
  std::atomic<std::uint64_t> queries{0};        ///< Answered.
  std::atomic<std::int64_t> last_inference{0};  ///< Milliseconds since 1970; 0 before the first.

  /// Whether it takes queries.
  [[nodiscard]] bool ready() const noexcept { return !model.engine->fault().has_value(); }
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
