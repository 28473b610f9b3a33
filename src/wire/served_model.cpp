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

ModelStatistics ServedModel::statistics() const {
  ModelStatistics sum{.name = model.name, .version = model.version, .ready = ready()};
  for (const ModelCounters& one : counters) {
    one.of(Protocol::http).add_to(sum.http);
    one.of(Protocol::grpc).add_to(sum.grpc);
    sum.queries_waiting += one.queries_waiting.get();
    sum.queries_in_flight += one.queries_in_flight.get();
    sum.last_inference = std::max(sum.last_inference, static_cast<std::int64_t>(one.last_inference.get()));
  }
  return sum;
}

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
