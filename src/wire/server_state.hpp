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

/// A server's threads, and what they share.
struct Server::State {
  /// Throws as Server does.
  /// @param watcher  of ServerConfig
  State(ServerConfig config, std::vector<Model> models, FileDescriptor watcher);
  ~State();
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  void start();
  void wake() noexcept;
  void stop() noexcept;

  /// What asks the engine of a model, for each thread.
  struct Ways {
    std::vector<std::unique_ptr<Asker>> askers;
    std::vector<std::unique_ptr<rings::RingLane>> lanes;
  };
  /// Those of a model that is published next. Throws UsageError where its engine has too few lanes. `mutex` is held, or
  /// no thread has started; so for hand_out().
  [[nodiscard]] Ways make_ways(ServedModel& served);
  /// Gives them to the threads. Throws std::bad_alloc; then no thread has one. Shared::publishing is held from before
  /// this until the model is published.
  void hand_out(Ways ways);
  /// Calls act(thread) for all threads.
  template <class Act>
  void each_thread(Act act) {
    for (FrontThread& thread : threads) act(thread);
    for (rings::RingThread& thread : ring_threads) act(thread);
  }
  /// Has all threads serve `models`, and waits until they do. `changing` is held.
  /// @param fresh    a model of it that was not served before; null for none
  /// @param leaving  a model that was served before and is not in it; null for none
  /// Throws UsageError after stop(), or where the engine of `fresh` has too few lanes; then nothing has changed.
  void publish(std::shared_ptr<const Models> models, ServedModel* fresh, std::shared_ptr<ServedModel> leaving);

  /// The same for certificates and tokens.
  void publish(std::shared_ptr<const Credentials> credentials);
  /// Waits until all threads have taken in Shared::news.
  void wait_for(std::uint64_t news);

  Shared shared;
  std::uint16_t port = 0;
  std::optional<std::uint16_t> grpc_port;
  std::mutex changing;  ///< One load or unload at a time. Locked before `mutex`.
  /// Models that threads may still ask, although they have left. Guarded by `changing`. Whoever holds the last
  /// reference to a model destroys it, which may wait for Python: it is to be no thread that answers.
  std::vector<std::shared_ptr<ServedModel>> leaving;
  std::mutex mutex;  ///< Guards `threads` and `ring_threads` once they have started.
  std::deque<FrontThread> threads;
  std::deque<rings::RingThread> ring_threads;  ///< The first accepts clients.

 private:
  void listen_for_rings();
};

}  // namespace headrace::wire
