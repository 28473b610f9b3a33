#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "headrace/wire/server.hpp"
#include "wire/front_thread.hpp"
#include "wire/rings/ring_thread.hpp"

namespace headrace::wire {

/// A server's threads, and the state that they share.
struct Server::State {
  /// Throws as Server does.
  /// @param watcher  ServerConfig::watcher
  State(ServerConfig config, std::vector<Model> models, FileDescriptor watcher);
  ~State();
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  void start();
  void wake() noexcept;
  void stop() noexcept;

  /// For each thread, the object that queries a model's engine.
  struct Ways {
    std::vector<std::unique_ptr<Asker>> askers;
    std::vector<std::unique_ptr<rings::RingLane>> lanes;
  };
  /// Makes them for a model that is published next. Throws UsageError if its engine has too few lanes. The caller holds
  /// `mutex`, or no thread has started; likewise for hand_out().
  [[nodiscard]] Ways make_ways(ServedModel& served);
  /// Passes them to the threads. Throws std::bad_alloc; then no thread has one. The caller holds Shared::publishing
  /// from before this call until the model is published.
  void hand_out(Ways ways);
  /// Calls act(thread) for all threads.
  template <class Act>
  void each_thread(Act act) {
    for (FrontThread& thread : threads) act(thread);
    for (rings::RingThread& thread : ring_threads) act(thread);
  }
  /// Makes all threads serve `models`, and waits until they do. The caller holds `changing`.
  /// @param fresh    a model in `models` that was not served before; null for none
  /// @param leaving  a model that was served before and is not in `models`; null for none
  /// Throws UsageError after stop(), or if the engine of `fresh` has too few lanes; then nothing has changed.
  void publish(std::shared_ptr<const Models> models, ServedModel* fresh, std::shared_ptr<ServedModel> leaving);

  /// The same for credentials.
  void publish(std::shared_ptr<const Credentials> credentials);
  /// Waits until all threads have taken in Shared::news.
  void wait_for(std::uint64_t news);

  Shared shared;
  std::uint16_t port = 0;
  std::optional<std::uint16_t> grpc_port;
  std::mutex changing;  ///< Serialises loads and unloads. Locked before `mutex`.
  /// Replaced and unloaded models that threads may still use. Guarded by `changing`. Keeping them here ensures that no
  /// answering thread destroys a model, which may wait for Python.
  std::vector<std::shared_ptr<ServedModel>> leaving;
  std::mutex mutex;  ///< Guards `threads` and `ring_threads` once they have started.
  std::deque<FrontThread> threads;
  std::deque<rings::RingThread> ring_threads;  ///< The first accepts clients.

 private:
  void listen_for_rings();
};

}  // namespace headrace::wire
