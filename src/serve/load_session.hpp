#pragma once

#include <cstdint>
#include <memory>

#include "headrace/measure/detail/load.hpp"
#include "headrace/serve/detail/ladder.hpp"

namespace headrace::serve {

/// An engine that one load after the other is put on, every answer compared with the host's: for runs so long that
/// keeping every latency of all of it would not do, and for loads that change. One thread at a time.
class LoadSession {
 public:
  /// `generators` threads will make the load, each with a client of its own; the engine's threads are bound, where the
  /// plan says so, to the processors after theirs. `seed` chooses the queries. Throws as Engine does, and UsageError
  /// when the operator has no sample queries or `generators` is not 1 to 64.
  LoadSession(Device device, Operator op, Plan plan, std::uint32_t generators = 1, std::uint64_t seed = 1);
  ~LoadSession();
  LoadSession(LoadSession&&) noexcept;
  LoadSession& operator=(LoadSession&&) noexcept;

  /// One load; everything of it has been answered when this returns. Throws UsageError for options out of range.
  [[nodiscard]] measure::LoadResult run(const measure::LoadOptions& options);
  /// Over all runs so far.
  [[nodiscard]] EngineStatistics statistics() const;
  /// Ends the engine's threads. A run after that is answered with Errc::stopped.
  void stop() noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace headrace::serve
