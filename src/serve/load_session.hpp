#pragma once

#include <cstdint>
#include <memory>

#include "headrace/measure/detail/load.hpp"
#include "headrace/serve/detail/ladder.hpp"

namespace headrace::serve {

/// An engine that runs one load after another, with every answer compared with the host's. For runs too long to keep
/// every latency, and for changing loads. One thread at a time.
class LoadSession {
 public:
  /// `generators` threads generate the load, each with its own client. If the plan binds the engine's threads, it binds
  /// them to the processors after theirs. `seed` chooses the queries. Throws as Engine does, and UsageError if the
  /// operator has no sample queries or `generators` is not 1 to 64.
  LoadSession(Device device, Operator op, Plan plan, std::uint32_t generators = 1, std::uint64_t seed = 1);
  ~LoadSession();
  LoadSession(LoadSession&&) noexcept;
  LoadSession& operator=(LoadSession&&) noexcept;

  /// Runs one load and returns once all its queries are answered. Throws UsageError for options out of range.
  [[nodiscard]] measure::LoadResult run(const measure::LoadOptions& options);
  /// Statistics over all runs so far.
  [[nodiscard]] EngineStatistics statistics() const;
  /// Ends the engine's threads. Queries of a later run come back with Errc::stopped.
  void stop() noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace headrace::serve
