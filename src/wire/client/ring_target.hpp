#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "headrace/measure/detail/generator.hpp"
#include "headrace/wire/client.hpp"
#include "wire/client/channel.hpp"

namespace headrace::wire::client {

/// A model behind shared memory, and what of it is asked.
struct RingEndpoint {
  std::string url;                     ///< As wire::Client takes it.
  std::uint32_t slots = 256;           ///< Queries in flight of each generator.
  std::vector<std::string> queries{};  ///< Asked in turn; at least one.
  std::optional<Duration> deadline{};  ///< From when a query is sent.
  /// How long the server may be away, and may answer nothing while it has queries.
  Duration patience = std::chrono::seconds(10);
};

/// A client with a ring as measure's LoadTarget. A query that finds no free slot waits for one, and its latency with
/// it. Used by one thread at a time.
class RingTarget {
 public:
  /// @param endpoint  outlives the target
  /// Throws as wire::Client does.
  explicit RingTarget(const RingEndpoint& endpoint);

  [[nodiscard]] bool submit(Time scheduled);
  /// Throws SystemError once the server has been away, or has answered nothing while it had queries, for longer than
  /// the endpoint's patience.
  template <class Done>
  std::size_t poll(Done done) {
    std::size_t count = 0;
    for (; count < measure::kPollMax && !ended_.empty(); ++count) {
      done(ended_.front().scheduled, ended_.front().outcome);
      ended_.pop_front();
    }
    const std::size_t back = client_.poll(
        [&](const serve::Completion& one) { done(Time{static_cast<std::int64_t>(one.tag)}, outcome_of(one.status)); },
        measure::kPollMax - count);
    count += back;
    if (count == 0) {
      check();
    } else {
      heard_at_ = {};
    }
    if (!waiting_.empty()) send_waiting();
    return count;
  }
  void rest(Time until);
  void finish(bool stopped);

  /// Times that the server went away and a new client found it again.
  std::uint64_t lost = 0;
  std::string failure;  ///< Why the first query that failed did, ...
  std::string refusal;  ///< ... and the first that was refused.

 private:
  [[nodiscard]] measure::Outcome outcome_of(Status status);
  [[nodiscard]] bool send(Time scheduled);
  void send_waiting();
  /// Nothing has come back: looks how long that has been so, and whether the server is there.
  void check();
  void connect_again(Time now);

  const RingEndpoint& endpoint_;
  Client client_;
  std::deque<Time> waiting_;  ///< Queries that wait for a slot, by when they were scheduled.
  std::deque<Back> ended_;    ///< Have ended without the server.
  std::size_t next_ = 0;      ///< The query that is asked next.
  Time heard_at_{};           ///< When a poll first found nothing since one found something.
  Time looked_at_{};          ///< When check() looked last.
  Time away_at_{};            ///< Since when the server is away.
  Time connect_at_{};
  Time finish_until_ = Time::max();
};

}  // namespace headrace::wire::client
