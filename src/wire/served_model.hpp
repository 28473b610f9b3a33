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

/// The highest Model::waiting_max.
inline constexpr std::uint32_t kWaitingMost = 1U << 30;

/// The counts of a model name, by thread of the server. A model that replaces another continues its counts.
using ModelCounts = std::vector<ModelCounters>;

/// A model and its statistics. Any thread.
struct ServedModel {
  ServedModel(Model served, std::shared_ptr<ModelCounts> counted)
      : model(std::move(served)), counters(std::move(counted)) {}

  const Model model;
  const std::shared_ptr<ModelCounts> counters;
  std::vector<Asker*> askers;                 ///< One for each thread. Set before threads serve it, then constant.
  std::atomic<std::uint32_t> users{0};        ///< Threads that may still send queries to its engine.
  std::atomic<std::uint32_t> waiting_max{0};  ///< Model::waiting_max, or the server's. Set before threads serve it.

  /// Whether the model takes queries.
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
  std::string reason = {};              ///< Why no model is loaded.

  [[nodiscard]] ModelStatistics statistics() const;
};

/// The models that a server serves at one time. Threads share the object, so it is immutable and is replaced as a
/// whole.
class Models {
 public:
  /// Throws UsageError for models that cannot be served, or two models of one name.
  /// @param threads  number of threads of the server
  Models(std::vector<Model> models, std::size_t threads);

  /// A copy with `model`, which replaces the model of the same name, if any. Throws UsageError if it cannot be served.
  [[nodiscard]] Models with(Model model, std::size_t threads) const;
  /// A copy without the model of that name; the name itself stays.
  /// @param reason  the reason that clients are told
  [[nodiscard]] Models without(std::string_view name, std::string_view reason) const;

  /// The model of that name; null if none is loaded.
  [[nodiscard]] ServedModel* find(std::string_view name) const noexcept;
  /// The same. Throws RequestError (404) if none is loaded.
  [[nodiscard]] ServedModel& require(std::string_view name) const;
  /// The entry of a name; null if the server has never known the name.
  [[nodiscard]] const RepositoryEntry* entry(std::string_view name) const noexcept;
  [[nodiscard]] const std::vector<RepositoryEntry>& entries() const noexcept { return entries_; }
  /// Whether all loaded models take queries.
  [[nodiscard]] bool ready() const noexcept;

 private:
  void put(Model model, std::size_t threads);

  std::vector<RepositoryEntry> entries_;
};

}  // namespace headrace::wire
