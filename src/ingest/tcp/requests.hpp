#pragma once

#include <cstdint>
#include <new>

#include "ingest/tcp/lists.hpp"
#include "ingest/tcp/state.hpp"

namespace headrace::ingest {

/// Connections without a stream, found by flow and listed by state.
class TcpRequests {
 public:
  HEADRACE_HD explicit TcpRequests(const TcpView& view) : view_(view), lists_(view.shared->requests) {}

  [[nodiscard]] HEADRACE_HD std::uint32_t find(const Flow& flow) const {
    return detail::find_in_chain(view_.requests, bucket(flow), flow);
  }

  /// The number of connections whose handshake is complete.
  [[nodiscard]] HEADRACE_HD std::uint32_t complete_count() const {
    return lists_.waiting.count + lists_.invited.count + lists_.silent.count + lists_.refused.count +
           lists_.finished.count;
  }

  /// Adds a half-open connection for `flow`. If there are too many, one gives way: the oldest of those that were sent
  /// the most SYN+ACKs.
  [[nodiscard, gnu::noinline]] HEADRACE_HD std::uint32_t add(const Flow& flow) {
    if (lists_.half_open_count >= view_.shared->config.half_open_max) give_up_half_open();
    const std::uint32_t i = lists_.unused.first;
    detail::unlink(view_.requests, lists_.unused, i);
    TcpRequest& request = *::new (static_cast<void*>(view_.requests + i)) TcpRequest;
    request.flow = flow;
    detail::add_to_chain(view_.requests, bucket(flow), i);
    link(i, RequestState::half_open);
    return i;
  }

  [[gnu::noinline]] HEADRACE_HD void remove(std::uint32_t i) {
    detail::remove_from_chain(view_.requests, bucket(view_.requests[i].flow), i);
    leave(i);
    view_.requests[i].state = RequestState::unused;
    detail::append(view_.requests, lists_.unused, i);
    if (lists_.half_open_count + complete_count() == 0) lists_.next_deadline = kNever;
  }

  /// Moves a connection to the end of another state's list, or of the half-open list for another number of tries.
  [[gnu::noinline]] HEADRACE_HD void move(std::uint32_t i, RequestState state, std::uint64_t now,
                                          std::uint8_t tries = 0) {
    leave(i);
    view_.requests[i].tries = tries;
    view_.requests[i].since = now;
    link(i, state);
  }

  /// Moves a connection to the front of the waiting list, because it has waited before.
  [[gnu::noinline]] HEADRACE_HD void wait_first(std::uint32_t i, std::uint64_t now) {
    leave(i);
    view_.requests[i].since = now;
    view_.requests[i].state = RequestState::waiting;
    detail::prepend(view_.requests, lists_.waiting, i);
    count();
  }

 private:
  [[nodiscard]] HEADRACE_HD std::uint32_t& bucket(const Flow& flow) const {
    return view_.request_buckets[static_cast<std::uint32_t>(detail::hash_of(*view_.shared, flow)) &
                                 view_.shared->request_bucket_mask];
  }

  HEADRACE_HD void give_up_half_open() {
    std::uint32_t tries = TcpRequest::kTriesMax - 1;
    while (lists_.half_open[tries].count == 0) --tries;
    ++view_.shared->counters.half_open_lost;
    remove(lists_.half_open[tries].first);
  }

  HEADRACE_HD void link(std::uint32_t i, RequestState state) {
    view_.requests[i].state = state;
    detail::append(view_.requests, list_of(view_.requests[i]), i);
    if (state == RequestState::half_open) ++lists_.half_open_count;
    if (state == RequestState::invited && view_.requests[i].dropped) ++lists_.invited_again;
    count();
  }

  HEADRACE_HD void leave(std::uint32_t i) {
    TcpRequest& request = view_.requests[i];
    detail::unlink(view_.requests, list_of(request), i);
    if (request.state == RequestState::half_open) --lists_.half_open_count;
    if (request.state == RequestState::invited && request.dropped) --lists_.invited_again;
    if (request.promised) --lists_.half_open_promised;
    request.promised = false;
    count();
  }

  HEADRACE_HD void count() const {
    view_.shared->counters.connections_waiting = lists_.waiting.count + lists_.refused.count + lists_.finished.count;
    view_.shared->counters.connections_silent = lists_.invited.count + lists_.silent.count;
  }

  [[nodiscard]] HEADRACE_HD TcpList& list_of(const TcpRequest& request) const {
    switch (request.state) {
      case RequestState::unused: break;
      case RequestState::half_open: return lists_.half_open[request.tries];
      case RequestState::waiting: return lists_.waiting;
      case RequestState::invited: return lists_.invited;
      case RequestState::silent: return lists_.silent;
      case RequestState::refused: return lists_.refused;
      case RequestState::finished: return lists_.finished;
    }
    return lists_.unused;
  }

  TcpView view_;
  TcpRequestLists& lists_;
};

}  // namespace headrace::ingest
