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
#include "headrace/device/detail/foreign_memory.hpp"
#include "headrace/device/device.hpp"
#include "headrace/wire/server.hpp"
#include "wire/asker.hpp"
#include "wire/credentials.hpp"
#include "wire/inbox.hpp"
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

/// The memory of devices, read at most once a second, because CUDA takes long to report it. Any thread.
class DeviceMemory {
 public:
  /// Empty for a device that has failed.
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

/// State that all threads of a server share.
struct Shared {
  explicit Shared(const ServerConfig& configured)
      : config(configured),
        memory(config.memory_max),
        regions(config.shared_memory, config.cuda_shared_memory ? shareable_devices() : std::vector<Device>(),
                config.shared_memory_max),
        calls(config.model_control, config.threads),
        traces(config.traces_max) {}

  [[nodiscard]] ServerStatistics statistics() const;
  /// Bytes of all requests and replies.
  [[nodiscard]] std::size_t memory_used() const noexcept;
  /// The models that are served now. Threads of the server use Front::models instead.
  [[nodiscard]] std::shared_ptr<const Models> models() const {
    const std::lock_guard locked(publishing);
    return published;
  }

  /// Milliseconds since 1970 at `time`, relative to the server's start, which saves reading the clock.
  [[nodiscard]] std::int64_t wall_milliseconds_at(Time time) const noexcept {
    return started + std::chrono::duration_cast<std::chrono::milliseconds>(time - began).count();
  }
  /// Number of threads that count and are clients of each engine: those for HTTP and gRPC, followed by those for shared
  /// memory.
  [[nodiscard]] std::size_t threads() const noexcept {
    return config.threads + (config.shm.empty() ? 0U : config.shm_threads);
  }

  const ServerConfig config;
  Budget memory;
  SharedRegions regions;
  ModelCalls calls;
  Traces traces;
  mutable std::mutex publishing;                   ///< Guards the next two, and what bring() adds to.
  std::shared_ptr<const Models> published;         ///< Not null once threads have started.
  std::shared_ptr<const Credentials> credentials;  ///< Likewise.
  std::atomic<const char*> handshake_failure{""};  ///< Why the last handshake failed; a string of static lifetime.
  /// Incremented with each publication and each ended model call; threads check for both when it changes.
  std::atomic<std::uint64_t> news{0};
  std::atomic<bool> draining{false};
  std::atomic<bool> stopping{false};
  std::atomic<std::uint64_t> connections{0};
  std::atomic<std::uint64_t> connections_open{0};
  std::atomic<std::uint64_t> connections_refused{0};
  std::atomic<std::uint64_t> ring_clients{0};  ///< Clients of shared memory.
  /// One element per thread, which writes to it. No element is added once the threads have started.
  std::deque<ReplyCounters> replies;
  std::deque<InferencePool> inferences;  ///< Likewise, for the threads of HTTP and gRPC.
  std::deque<Inbox> inboxes;             ///< Likewise, for the threads of HTTP and gRPC.
  const Time began = SteadyClock::now();
  const std::int64_t started = wall_milliseconds();  ///< Since 1970.
  const DeviceMemory device_memory;
};

/// Work that a thread defers so that others get their turn first, and continues without a wake-up.
class Turn {
 public:
  virtual void go_on() noexcept = 0;

 protected:
  ~Turn() = default;
};

/// The parts of a thread that its connections use.
struct Front {
  Shared& shared;
  Loop& loop;
  std::size_t thread;  ///< The thread's number within the server.
  ReplyCounters& replies;
  InferencePool& inferences;
  ThreadBudget& memory;  ///< The thread's part of Shared::memory, owned by `inferences`.
  /// Last reading of the clock, some microseconds old; precise enough for limits of a millisecond or more.
  Time now = SteadyClock::now();
  SpareBuffers buffers = {};     ///< Spare buffers for messages.
  std::span<char> buffer;        ///< Receive buffer; each call of recv() may overwrite it.
  std::size_t over = 0;          ///< Number of connections to destroy.
  std::deque<Turn*> turns = {};  ///< Objects whose go_on() is called soon, once each.
  /// The models that this thread serves. They are replaced only between two turns, so that a reference to a model is
  /// valid during a handler's call, or until its Asker has notified the owner of an inference.
  std::shared_ptr<const Models> models = {};
  std::shared_ptr<const Credentials> credentials = {};
};

}  // namespace headrace::wire
