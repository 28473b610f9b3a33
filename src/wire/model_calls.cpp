#include "wire/model_calls.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "wire/model_config.hpp"

namespace headrace::wire {

namespace {

constexpr std::size_t kCallsMax = 64;  // most calls that have not ended

}  // namespace

void ModelParameters::note(std::string_view name, bool load, bool is_false, std::optional<std::string_view> text) {
  if (name == "unload_dependents" && is_false) return;  // clients of Triton always send it
  if (name == "unload_dependents")
    refuse("the parameter \"unload_dependents\" is not supported: models have no dependents");
  if (name == "config" && load) {
    if (!text) refuse("the parameter \"config\" must be text");
    config = *text;
    return;
  }
  refuse(fmt::format("the parameter \"{}\" is not supported: a model is loaded from the file that the server was given",
                     name));
}

std::shared_ptr<ModelCall> make_model_call(const Models& models, bool enabled, bool draining, std::string_view name,
                                           bool load, const ModelParameters& parameters) {
  if (!enabled) {
    throw RequestError(
        kNotImplemented,
        "this server does not offer loading and unloading models; start headrace serve with --model-control");
  }
  const RepositoryEntry* const entry = models.entry(name);
  if (entry == nullptr) throw RequestError(kNotFound, fmt::format("there is no model '{}'", name));
  if (draining) throw RequestError(kUnavailable, "the server is about to stop");
  auto call = std::make_shared<ModelCall>(ModelCall{.request = {.model = std::string(name), .load = load}});
  if (parameters.config) call->request.change = read_config(*entry, *parameters.config);
  return call;
}

void ModelCalls::add(const std::shared_ptr<ModelCall>& call) {
  const std::lock_guard locked(mutex_);
  std::size_t open = waiting_.size() + taken_.size();
  for (const auto& of_thread : ended_) open += of_thread.size();
  if (open >= kCallsMax) throw RequestError(kTooManyRequests, "too many requests to load or unload models are waiting");
  call->request.number = ++numbers_;
  taken_.reserve(kCallsMax);  // so that later steps cannot fail
  for (auto& of_thread : ended_) of_thread.reserve(kCallsMax);
  waiting_.push_back(call);
  changed_.notify_one();
}

std::optional<ModelRequest> ModelCalls::next(Duration limit) {
  std::unique_lock locked(mutex_);
  changed_.wait_for(locked, limit, [this] { return closed_ || !waiting_.empty(); });
  if (closed_ || waiting_.empty()) return {};
  ModelRequest request = waiting_.front()->request;
  taken_.push_back(std::move(waiting_.front()));
  waiting_.pop_front();
  return request;
}

void ModelCalls::end(std::uint64_t number, int status, std::string_view message) {
  const std::lock_guard locked(mutex_);
  const auto found = std::ranges::find(taken_, number, [](const auto& call) { return call->request.number; });
  if (found == taken_.end()) return;
  ModelCall& call = **found;
  call.message = RequestError(status, message).what();  // shortened
  call.status = status;
  ended_[call.thread].push_back(std::move(*found));
  taken_.erase(found);
}

std::vector<std::shared_ptr<ModelCall>> ModelCalls::take_ended(std::size_t thread) noexcept {
  const std::lock_guard locked(mutex_);
  return std::exchange(ended_[thread], {});
}

void ModelCalls::close() noexcept {
  const std::lock_guard locked(mutex_);
  closed_ = true;
  changed_.notify_all();
}

}  // namespace headrace::wire
