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

/// A model behind shared memory, and the queries to send.
struct RingEndpoint {
  std::string url;                     ///< The URL for wire::Client.
  std::uint32_t slots = 256;           ///< Most queries in flight per generator.
  std::vector<std::string> queries{};  ///< Queries to send in turn; at least one.
  std::optional<Duration> deadline{};  ///< Deadline, counted from sending a query.
  /// Time limit for the server to be away, or to answer nothing while it has queries.
  Duration patience = std::chrono::seconds(10);
};

/// A ring client as a LoadTarget of measure. A query that finds no free slot waits for one, and the wait counts as
/// latency. Used by one thread at a time.
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
  std::string failure;  ///< Why the first failed query failed.
  std::string refusal;  ///< Why the first refused query was refused.

 private:
  [[nodiscard]] measure::Outcome outcome_of(Status status);
  [[nodiscard]] bool send(Time scheduled);
  void send_waiting();
  /// Called when no query came back: checks for how long, and whether the server is still there.
  void check();
  void connect_again(Time now);

  const RingEndpoint& endpoint_;
  Client client_;
  std::deque<Time> waiting_;  ///< Queries that wait for a slot, by when they were scheduled.
  std::deque<Back> ended_;    ///< Queries that ended without the server.
  std::size_t next_ = 0;      ///< The next query to send.
  Time heard_at_{};           ///< When a poll first found nothing after one that found something.
  Time looked_at_{};          ///< Time of the last check().
  Time away_at_{};            ///< Since when the server has been away.
  Time connect_at_{};
  Time finish_until_ = Time::max();
};

}  // namespace headrace::wire::client
