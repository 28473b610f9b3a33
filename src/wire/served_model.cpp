#include "wire/served_model.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "headrace/base/error.hpp"
#include "wire/request_error.hpp"

namespace headrace::wire {

RequestOutcome outcome_of(int status) noexcept {
  switch (status) {
    case kOk: return RequestOutcome::answered;
    case kTooManyRequests:
    case kUnavailable: return RequestOutcome::refused;
    case kRequestTimedOut:
    case kTimedOut: return RequestOutcome::late;
    case kNotImplemented: return RequestOutcome::invalid;
    default: return status < kInternalError ? RequestOutcome::invalid : RequestOutcome::failed;
  }
}

namespace {

ModelStatistics sum_of(const ModelCounts& counters) {
  ModelStatistics sum;
  for (const ModelCounters& one : counters) {
    one.of(Protocol::http).add_to(sum.http);
    one.of(Protocol::grpc).add_to(sum.grpc);
    one.of(Protocol::shm).add_to(sum.shm);
    one.priorities[static_cast<std::size_t>(Priority::high)].add_to(sum.high);
    one.priorities[static_cast<std::size_t>(Priority::normal)].add_to(sum.normal);
    sum.queries_in_flight += one.queries_in_flight.get();
    sum.last_inference = std::max(sum.last_inference, static_cast<std::int64_t>(one.last_inference.get()));
  }
  sum.queries_waiting = sum.high.queries_waiting + sum.normal.queries_waiting;
  return sum;
}

}  // namespace

ModelStatistics ServedModel::statistics() const {
  ModelStatistics sum = sum_of(*counters);
  sum.name = model.name;
  sum.version = model.version;
  sum.loaded = true;
  sum.ready = ready();
  const serve::Plan plan = model.engine->plan();
  sum.share = plan.share;
  sum.latency_max = plan.latency_max;
  sum.in_flight_max = plan.in_flight_max == 0 ? plan.slots : plan.in_flight_max;
  sum.waiting_max = waiting_max.load(std::memory_order_relaxed);
  return sum;
}

ModelStatistics RepositoryEntry::statistics() const {
  if (served != nullptr) return served->statistics();
  ModelStatistics sum = sum_of(*counters);
  sum.name = name;
  sum.version = version;
  return sum;
}

Models::Models(std::vector<Model> models, std::size_t threads) {
  if (models.empty()) throw UsageError("a server needs at least one model");
  for (Model& model : models) {
    if (find(model.name) != nullptr) throw UsageError(fmt::format("two models are called '{}'", model.name));
    put(std::move(model), threads);
  }
}

Models Models::with(Model model, std::size_t threads) const {
  Models changed = *this;
  changed.put(std::move(model), threads);
  return changed;
}

Models Models::without(std::string_view name, std::string_view reason) const {
  Models changed = *this;
  for (RepositoryEntry& entry : changed.entries_) {
    if (entry.name != name) continue;
    entry.served = nullptr;
    entry.reason = reason;
  }
  return changed;
}

void Models::put(Model model, std::size_t threads) {
  check_model(model);
  auto found = std::ranges::find(entries_, model.name, &RepositoryEntry::name);
  if (found == entries_.end()) {
    entries_.push_back(
        {.name = model.name, .version = {}, .counters = std::make_shared<ModelCounts>(threads), .served = {}});
    found = entries_.end() - 1;
  }
  found->version = model.version;
  found->served = std::make_shared<ServedModel>(std::move(model), found->counters);
  found->reason.clear();
}

ServedModel* Models::find(std::string_view name) const noexcept {
  const RepositoryEntry* const found = entry(name);
  return found == nullptr ? nullptr : found->served.get();
}

ServedModel& Models::require(std::string_view name) const {
  const RepositoryEntry* const found = entry(name);
  if (found == nullptr) throw RequestError(kNotFound, fmt::format("there is no model '{}'", name));
  if (found->served == nullptr) {
    throw RequestError(kNotFound, fmt::format("model '{}' is not loaded: {}", name, found->reason));
  }
  return *found->served;
}

const RepositoryEntry* Models::entry(std::string_view name) const noexcept {
  const auto found = std::ranges::find(entries_, name, &RepositoryEntry::name);
  return found == entries_.end() ? nullptr : &*found;
}

bool Models::ready() const noexcept {
  return std::ranges::all_of(entries_, [](const auto& entry) { return !entry.served || entry.served->ready(); });
}

}  // namespace headrace::wire
