#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/budget.hpp"
#include "headrace/base/detail/clock.hpp"
#include "headrace/device/device.hpp"
#include "headrace/wire/server.hpp"
#include "wire/asker.hpp"
#include "wire/credentials.hpp"
#include "wire/inference_pool.hpp"
#include "wire/loop.hpp"
#include "wire/model_calls.hpp"
#include "wire/served_model.hpp"
#include "wire/shared_regions.hpp"
#include "wire/spare_buffers.hpp"
#include "wire/traces.hpp"

namespace headrace::wire {

/// Milliseconds since 1970.
[[nodiscard]] inline std::int64_t wall_milliseconds() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
}

/// The memory of devices, read once a second at most: CUDA takes long to say. Any thread.
class DeviceMemory {
 public:
  /// Nothing for a device that has failed.
  [[nodiscard]] std::optional<MemoryInfo> of(const Device& device) const;

 private:
  struct Reading {
    Time at{};
    bool read = false;
    std::optional<MemoryInfo> memory = {};
  };
  mutable std::mutex mutex_;
  mutable std::map<std::string, Reading> readings_;
};

/// What all threads of a server share.
struct Shared {
  explicit Shared(const ServerConfig& configured)
      : config(configured),
        memory(config.memory_max),
        regions(config.shared_memory, config.shared_memory_max),
        calls(config.model_control, config.threads),
        traces(config.traces_max) {}

  [[nodiscard]] ServerStatistics statistics() const;
  /// Bytes of all requests and replies.
  [[nodiscard]] std::size_t memory_used() const noexcept;
  /// The models that are served now. Threads of the server have them in Front::models.
  [[nodiscard]] std::shared_ptr<const Models> models() const {
    const std::lock_guard locked(publishing);
    return published;
  }

  /// Milliseconds since 1970 at `time`, by the server's start: spares a reading of the clock.
  [[nodiscard]] std::int64_t wall_milliseconds_at(Time time) const noexcept {
    return started + std::chrono::duration_cast<std::chrono::milliseconds>(time - began).count();
  }
  /// Threads that count, and that are a client of each engine: those for HTTP and gRPC, and behind them those for
  /// shared memory.
  [[nodiscard]] std::size_t threads() const noexcept {
    return config.threads + (config.shm.empty() ? 0U : config.shm_threads);
  }

  const ServerConfig config;
  Budget memory;
  SharedRegions regions;
  ModelCalls calls;
  Traces traces;
  mutable std::mutex publishing;                   ///< Guards `published`, and what FrontThread::bring() adds to.
  std::shared_ptr<const Models> published;         ///< Never null once threads have started.
  std::shared_ptr<const Credentials> credentials;  ///< Likewise, and guarded likewise.
  std::atomic<const char*> handshake_failure{""};  ///< Why the last handshake failed; never ends.
  /// Rises with each publication and each call that ends: threads look for both where it has.
  std::atomic<std::uint64_t> news{0};
  std::atomic<bool> draining{false};
  std::atomic<bool> stopping{false};
  std::atomic<std::uint64_t> connections{0};
  std::atomic<std::uint64_t> connections_open{0};
  std::atomic<std::uint64_t> connections_refused{0};
  std::atomic<std::uint64_t> ring_clients{0};  ///< Clients of shared memory.
  /// One for each thread, which writes to it. None is added once the threads have started.
  std::deque<ReplyCounters> replies;
  std::deque<InferencePool> inferences;  ///< Likewise, for threads of HTTP and gRPC.
  const Time began = SteadyClock::now();
  const std::int64_t started = wall_milliseconds();  ///< Since 1970.
  const DeviceMemory device_memory;
};

/// What goes on without being woken, since others have their turn first.
class Turn {
 public:
  virtual void go_on() noexcept = 0;

 protected:
  ~Turn() = default;
};

/// What a connection uses of the thread that it belongs to.
struct Front {
  Shared& shared;
  Loop& loop;
  std::size_t thread;  ///< Its number among those of the server.
  ReplyCounters& replies;
  InferencePool& inferences;
  ThreadBudget& memory;  ///< The thread's part of Shared::memory, that of `inferences`.
  /// When it looked at the clock last, some microseconds ago: for limits of a millisecond and more.
  Time now = SteadyClock::now();
  SpareBuffers buffers = {};     ///< For messages.
  std::span<char> buffer;        ///< For what comes from a socket; each call of recv() may overwrite it.
  std::size_t over = 0;          ///< Connections that are to be destroyed.
  std::deque<Turn*> turns = {};  ///< Their go_on() is called soon, once.
  /// Those that this thread serves. Others take their place between two turns only: a reference to a model lasts as
  /// long as the call of a handler, or until its Asker has told of an inference.
  std::shared_ptr<const Models> models = {};
  std::shared_ptr<const Credentials> credentials = {};
};

}  // namespace headrace::wire
