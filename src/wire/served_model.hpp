#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "headrace/wire/model.hpp"
#include "wire/counters.hpp"

namespace headrace::wire {

class Asker;

/// What each thread of a server has counted of a name. A model that replaces another goes on with its counts.
using ModelCounts = std::vector<ModelCounters>;

/// A model and what has been asked of it. Any thread.
struct ServedModel {
  ServedModel(Model served, std::shared_ptr<ModelCounts> counted)
      : model(std::move(served)), counters(std::move(counted)) {}

  const Model model;
  const std::shared_ptr<ModelCounts> counters;
  std::vector<Asker*> askers;           ///< One for each thread. Set before threads serve it, and not changed then.
  std::atomic<std::uint32_t> users{0};  ///< Threads that may still ask its engine.

  /// Whether it takes queries.
  [[nodiscard]] bool ready() const noexcept { return !model.engine->stopped() && !model.engine->fault(); }
  /// The sum of all threads' counters.
  [[nodiscard]] ModelStatistics statistics() const;
};

/// A name in a server's repository.
struct RepositoryEntry {
  std::string name;
  std::string version;
  std::shared_ptr<ModelCounts> counters;
  std::shared_ptr<ServedModel> served;  ///< Null while no model of this name is loaded.
  std::string reason = {};              ///< Why none is loaded.

  [[nodiscard]] ModelStatistics statistics() const;
};

/// What a server serves at one time. Threads share it, so that it never changes: others take its place.
class Models {
 public:
  /// Throws UsageError for models that cannot be served, or two of one name.
  /// @param threads  of the server
  Models(std::vector<Model> models, std::size_t threads);

  /// The same with `model`, in the place of the one that has its name, if any. Throws UsageError for one that cannot be
  /// served.
  [[nodiscard]] Models with(Model model, std::size_t threads) const;
  /// The same without the model of a name; the name stays.
  /// @param reason  is told to clients
  [[nodiscard]] Models without(std::string_view name, std::string_view reason) const;

  /// Null for a name that has no model now.
  [[nodiscard]] ServedModel* find(std::string_view name) const noexcept;
  /// Throws RequestError (404) for a name that has none.
  [[nodiscard]] ServedModel& require(std::string_view name) const;
  /// Null for a name that the server has never known.
  [[nodiscard]] const RepositoryEntry* entry(std::string_view name) const noexcept;
  [[nodiscard]] const std::vector<RepositoryEntry>& entries() const noexcept { return entries_; }
  /// Whether all models that are loaded take queries.
  [[nodiscard]] bool ready() const noexcept;

 private:
  void put(Model model, std::size_t threads);

  std::vector<RepositoryEntry> entries_;
};

}  // namespace headrace::wire
