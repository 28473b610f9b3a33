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

/// Some connections to a server as measure's LoadTarget. A query that finds every stream taken waits for one, and its
/// latency with it. Used by one thread at a time.
class Target {
 public:
  /// @param endpoint, requests  outlive the target
  /// @param streams  requests on a connection at the same time; 1 for HTTP
  /// Throws UsageError for an address that is none, SystemError where the system lacks something.
  Target(const Endpoint& endpoint, const Requests& requests, std::size_t connections, std::uint32_t streams);
  ~Target();
  Target(Target&&) noexcept;
  Target& operator=(Target&&) = delete;

  /// Makes all connections; false where a stop was asked for first. Throws SystemError where that takes longer than the
  /// endpoint's patience.
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

  /// What all connections have seen.
  [[nodiscard]] Shared& shared() noexcept { return *shared_; }

 private:
  void turn();
  void check(Time now);
  [[nodiscard]] Channel* find_room() noexcept;
  void ask(Channel& channel, const Asked& asked);
  void flush();

  std::unique_ptr<Shared> shared_;
  std::vector<std::unique_ptr<Channel>> channels_;
  std::deque<Asked> waiting_;   ///< Queries that wait for a stream.
  std::size_t handed_out_ = 0;  ///< So many of Shared::back.
  std::size_t next_channel_ = 0;
  std::size_t next_content_ = 0;
  Time checked_at_{};
  Time up_at_{};  ///< When there was a connection last.
  Time finish_until_ = Time::max();
};

}  // namespace headrace::wire::client
