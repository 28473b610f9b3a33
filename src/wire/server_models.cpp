#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "headrace/base/error.hpp"
#include "wire/request_error.hpp"
#include "wire/server_state.hpp"

/// Changes of a server's models while it serves.
namespace headrace::wire {

Server::State::Ways Server::State::make_ways(ServedModel& served) {
  const std::uint32_t waiting_max = served.model.waiting_max;
  served.waiting_max.store(waiting_max == 0 ? shared.config.waiting_max : waiting_max, std::memory_order_relaxed);
  Ways made;
  for (std::size_t i = 0; i < threads.size(); ++i) {
    made.askers.push_back(std::make_unique<Asker>(served, (*served.counters)[i], threads[i].wake_descriptor()));
    served.askers.push_back(made.askers.back().get());
  }
  for (const rings::RingThread& thread : ring_threads) {
    made.lanes.push_back(std::make_unique<rings::RingLane>(served, (*served.counters)[thread.number()]));
  }
  served.users.store(static_cast<std::uint32_t>(shared.threads()), std::memory_order_relaxed);
  return made;
}

void Server::State::hand_out(Ways ways) {
  each_thread([](auto& thread) { thread.expect(); });
  for (std::size_t i = 0; i < ways.askers.size(); ++i) threads[i].bring(std::move(ways.askers[i]));
  for (std::size_t i = 0; i < ways.lanes.size(); ++i) ring_threads[i].bring(std::move(ways.lanes[i]));
}

void Server::State::publish(std::shared_ptr<const Models> models, ServedModel* fresh,
                            std::shared_ptr<ServedModel> leaves) {
  std::uint64_t news = 0;
  {
    const std::lock_guard locked(mutex);
    if (threads.empty()) throw UsageError("the server has been stopped");
    leaving.reserve(leaving.size() + 1);
    Ways ways;
    if (fresh != nullptr) ways = make_ways(*fresh);
    const std::lock_guard publishing(shared.publishing);
    hand_out(std::move(ways));
    if (leaves != nullptr) leaving.push_back(std::move(leaves));
    shared.published.swap(models);
    news = shared.news.fetch_add(1, std::memory_order_acq_rel) + 1;
    each_thread([](auto& thread) { thread.wake(); });
  }
  wait_for(news);
}

void Server::State::publish(std::shared_ptr<const Credentials> credentials) {
  std::uint64_t news = 0;
  {
    const std::lock_guard locked(mutex);
    if (threads.empty()) throw UsageError("the server has been stopped");
    const std::lock_guard publishing(shared.publishing);
    shared.credentials.swap(credentials);
    news = shared.news.fetch_add(1, std::memory_order_acq_rel) + 1;
    for (FrontThread& thread : threads) thread.wake();
  }
  wait_for(news);
}

void Server::State::wait_for(std::uint64_t news) {
  constexpr Duration kLook = std::chrono::microseconds(200);
  while (true) {
    {
      const std::lock_guard locked(mutex);
      bool seen = true;
      each_thread([&](const auto& thread) { seen = seen && thread.has_seen() >= news; });
      if (seen) return;
    }
    std::this_thread::sleep_for(kLook);
  }
}

void Server::load(Model model) {
  State& state = *state_;
  const std::lock_guard locked(state.changing);
  const std::shared_ptr<const Models> before = state.shared.models();
  const std::string name = model.name;
  auto models = std::make_shared<const Models>(before->with(std::move(model), state.shared.threads()));
  const RepositoryEntry* const former = before->entry(name);
  ServedModel* const fresh = models->find(name);
  state.publish(std::move(models), fresh, former == nullptr ? nullptr : former->served);
}

bool Server::unload(std::string_view name, std::string_view reason) {
  State& state = *state_;
  const std::lock_guard locked(state.changing);
  const std::shared_ptr<const Models> before = state.shared.models();
  if (before->find(name) == nullptr) return false;
  state.publish(std::make_shared<const Models>(before->without(name, reason)), nullptr, before->entry(name)->served);
  return true;
}

void Server::change(std::string_view name, const ModelChange& change) {
  State& state = *state_;
  if (change.waiting_max.value_or(0) > kWaitingMost) {
    throw UsageError(fmt::format("model {}: waiting_max must be at most {}", name, kWaitingMost));
  }
  // Without `changing`: a new share may take as long as a query, and loads of other models need not wait for that.
  const std::shared_ptr<const Models> models = state.shared.models();
  const RepositoryEntry* const entry = models->entry(name);
  if (entry == nullptr || entry->served == nullptr) {
    throw UsageError(fmt::format("there is no model '{}', or it is not loaded", name), Errc::not_found);
  }
  ServedModel& served = *entry->served;
  served.model.engine->change(change.plan);
  if (!change.waiting_max) return;
  const std::uint32_t most = *change.waiting_max == 0 ? state.shared.config.waiting_max : *change.waiting_max;
  served.waiting_max.store(most, std::memory_order_relaxed);
}

bool Server::uses(const serve::Engine& engine) {
  State& state = *state_;
  std::vector<std::shared_ptr<ServedModel>> left;  // destroyed without locks
  const std::lock_guard locked(state.changing);
  const auto asks = [&](const std::shared_ptr<ServedModel>& served) {
    return served != nullptr && served->model.engine.get() == &engine;
  };
  {
    const std::lock_guard threads_locked(state.mutex);
    const bool stopped = state.threads.empty();
    auto& leaving = state.leaving;
    const auto stays = [&](const std::shared_ptr<ServedModel>& served) {
      return !stopped && served->users.load(std::memory_order_acquire) > 0;
    };
    const auto first = std::partition(leaving.begin(), leaving.end(), stays);  // clang 14 fails on ranges::partition
    left.assign(std::make_move_iterator(first), std::make_move_iterator(leaving.end()));
    leaving.erase(first, leaving.end());
    if (stopped) return false;
  }
  const std::shared_ptr<const Models> models = state.shared.models();
  return std::ranges::any_of(state.leaving, asks) ||
         std::ranges::any_of(models->entries(), asks, &RepositoryEntry::served);
}

std::optional<ModelRequest> Server::next_model_request(Duration limit) { return state_->shared.calls.next(limit); }

void Server::end_model_request(const ModelRequest& request, const std::optional<std::string>& failure) {
  State& state = *state_;
  if (failure) {
    const std::lock_guard locked(state.changing);
    const std::shared_ptr<const Models> before = state.shared.models();
    if (before->find(request.model) == nullptr) {
      auto told = std::make_shared<const Models>(before->without(request.model, *failure));
      const std::lock_guard publishing(state.shared.publishing);
      state.shared.published.swap(told);
    }
  }
  state.shared.calls.end(request.number, failure ? kInternalError : kOk, failure.value_or(""));
  state.shared.news.fetch_add(1, std::memory_order_acq_rel);
  state.wake();
}

}  // namespace headrace::wire
