#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "headrace/measure/detail/generator.hpp"
#include "wire/client/channel.hpp"
#include "wire/client/endpoint.hpp"

namespace headrace::wire::client {

/// Connections to a server as a LoadTarget of measure. A query that finds every stream in use waits for one, and the
/// wait counts as latency. Used by one thread at a time.
class Target {
 public:
  /// @param endpoint, requests  outlive the target
  /// @param streams  concurrent requests per connection; 1 for HTTP
  /// Throws UsageError for an invalid address, SystemError if the system lacks a resource.
  Target(const Endpoint& endpoint, const Requests& requests, std::size_t connections, std::uint32_t streams);
  ~Target();
  Target(Target&&) noexcept;
  Target& operator=(Target&&) = delete;

  /// Makes all connections; returns false if a stop was requested first. Throws SystemError if this takes longer than
  /// the endpoint's patience.
  [[nodiscard]] bool connect(const std::stop_token& stop);

  [[nodiscard]] bool submit(Time scheduled);
  /// Throws SystemError once the server has been away, or silent while it had requests, for longer than the endpoint's
  /// patience.
  template <class Done>
  std::size_t poll(Done done) {
    if (handed_out_ == shared_->back.size()) turn();
    std::size_t count = 0;
    for (; count < measure::kPollMax && handed_out_ < shared_->back.size(); ++count) {
      const Back& back = shared_->back[handed_out_++];
      done(back.scheduled, back.outcome);
    }
    return count;
  }
  void rest(Time until);
  void finish(bool stopped);

  /// The state that all connections share.
  [[nodiscard]] Shared& shared() noexcept { return *shared_; }

 private:
  void turn();
  void check(Time now);
  /// A connection with a free stream. One connection takes all queries of a turn, so that they go out together.
  [[nodiscard]] Channel* find_room() noexcept;
  void next_channel() noexcept { channel_ = channel_ + 1 == channels_.size() ? 0 : channel_ + 1; }
  void ask(Channel& channel, const Asked& asked);
  void flush();

  std::unique_ptr<Shared> shared_;
  std::vector<std::unique_ptr<Channel>> channels_;
  std::deque<Asked> waiting_;   ///< Queries that wait for a stream.
  std::size_t handed_out_ = 0;  ///< Elements of Shared::back that poll() has returned.
  std::size_t channel_ = 0;     ///< The connection that takes queries.
  std::size_t next_content_ = 0;
  Time checked_at_{};
  Time up_at_{};  ///< When a connection was last up.
  Time finish_until_ = Time::max();
};

}  // namespace headrace::wire::client
