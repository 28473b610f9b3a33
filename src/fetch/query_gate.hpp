#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>

#include <condition_variable>

namespace headrace::fetch {

/// Lets queries over the same levels run side by side, or one of them alone: a query that found no room beside others
/// retries once none of them holds memory. Queries enter in order of arrival, so that each waits only for those before
/// it. Safe to use from any thread; a thread enters once.
class QueryGate {
 public:
  /// Leaves the gate on destruction.
  class Pass {
   public:
    Pass(const Pass&) = delete;
    Pass& operator=(const Pass&) = delete;
    ~Pass() { gate_.leave(); }
    /// Whether no other query has been inside since this one entered.
    [[nodiscard]] bool has_been_alone() const { return gate_.has_been_alone(entered_); }

   private:
    friend class QueryGate;
    Pass(QueryGate& gate, std::uint64_t entered) noexcept : gate_(gate), entered_(entered) {}
    QueryGate& gate_;
    std::uint64_t entered_;
  };

  /// Called a few times a second while a query waits; an exception that it throws ends the wait.
  using Poll = std::function<void()>;

  [[nodiscard]] Pass enter(const Poll& poll) { return {*this, wait_for_turn(false, poll)}; }
  [[nodiscard]] Pass enter_alone(const Poll& poll) { return {*this, wait_for_turn(true, poll)}; }

 private:
  [[nodiscard]] std::uint64_t wait_for_turn(bool alone, const Poll& poll);
  void leave();
  [[nodiscard]] bool has_been_alone(std::uint64_t entered) const;
  void forget(std::uint64_t ticket);

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::uint64_t> waiting_;  ///< Tickets in order of arrival.
  std::uint64_t tickets_ = 0;
  std::uint64_t entered_ = 0;        ///< Queries that have entered so far.
  std::uint64_t crowded_until_ = 0;  ///< The last query to enter while others were inside.
  std::uint32_t inside_ = 0;
  bool alone_ = false;
};

}  // namespace headrace::fetch
