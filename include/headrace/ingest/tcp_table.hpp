#pragma once

#include <cstdint>
#include <new>

#include "headrace/ingest/siphash.hpp"
#include "headrace/ingest/tcp_state.hpp"

namespace headrace::ingest {

/// Connections by their flow, in lists by age. Every connection is in one list.
class TcpTable {
 public:
  HEADRACE_HD explicit TcpTable(const TcpView& view) : view_(view) {}

  [[nodiscard]] HEADRACE_HD std::uint64_t hash(const Flow& flow) const {
    std::uint64_t words[Flow::kWords];
    flow.words(words);
    return siphash(view_.shared->config.key, words, Flow::kWords);
  }

  [[nodiscard]] HEADRACE_HD std::uint32_t find(const Flow& flow) {
    if (last_ != kNoConnection && in_use(last_) && same_flow(view_.connections[last_].flow, flow)) return last_;
    std::uint32_t i = bucket(flow);
    while (i != kNoConnection && !same_flow(view_.connections[i].flow, flow)) i = view_.connections[i].bucket_next;
    if (i != kNoConnection) last_ = i;
    return i;
  }

  /// An unused connection for `flow`, in the list of half-open ones. Where none is unused, the oldest that waits for
  /// its time to end makes place, else the oldest half-open one; kNoConnection when all are established. One half-open
  /// too many makes the oldest of them give way.
  [[nodiscard, gnu::noinline]] HEADRACE_HD std::uint32_t add(const Flow& flow) {
    TcpShared& shared = *view_.shared;
    if (shared.half_open.count >= shared.config.half_open_max) give_up_half_open();
    if (shared.unused.count == 0 && shared.time_wait.count > 0) remove(shared.time_wait.first);
    if (shared.unused.count == 0 && shared.half_open.count > 0) give_up_half_open();
    if (shared.unused.count == 0) return kNoConnection;
    const std::uint32_t i = shared.unused.first;
    unlink(shared.unused, i);
    TcpConnection& connection = *::new (static_cast<void*>(view_.connections + i)) TcpConnection;
    connection.flow = flow;
    connection.state = TcpState::syn_received;
    std::uint32_t& first = bucket(flow);
    connection.bucket_next = first;
    first = i;
    append(shared.half_open, i);
    return i;
  }

  [[gnu::noinline]] HEADRACE_HD void remove(std::uint32_t i) {
    TcpConnection& connection = view_.connections[i];
    std::uint32_t* link = &bucket(connection.flow);
    while (*link != i) link = &view_.connections[*link].bucket_next;
    *link = connection.bucket_next;
    unlink(list_of(connection.state), i);
    connection.state = TcpState::unused;
    view_.deadlines[i] = kNever;
    append(view_.shared->unused, i);
  }

  /// Changes the state, and the list with it.
  [[gnu::noinline]] HEADRACE_HD void move(std::uint32_t i, TcpState state) {
    TcpConnection& connection = view_.connections[i];
    TcpList& from = list_of(connection.state);
    TcpList& to = list_of(state);
    connection.state = state;
    if (&from == &to) return;
    unlink(from, i);
    append(to, i);
  }

  [[nodiscard]] HEADRACE_HD bool in_use(std::uint32_t i) const {
    return view_.connections[i].state != TcpState::unused;
  }

 private:
  [[nodiscard]] HEADRACE_HD std::uint32_t& bucket(const Flow& flow) const {
    return view_.buckets[static_cast<std::uint32_t>(hash(flow)) & view_.shared->bucket_mask];
  }

  HEADRACE_HD void give_up_half_open() {
    ++view_.shared->counters.half_open_lost;
    remove(view_.shared->half_open.first);
  }

  [[nodiscard]] HEADRACE_HD TcpList& list_of(TcpState state) const {
    if (state == TcpState::unused) return view_.shared->unused;
    if (state == TcpState::syn_received) return view_.shared->half_open;
    return state == TcpState::time_wait ? view_.shared->time_wait : view_.shared->established;
  }

  HEADRACE_HD void append(TcpList& list, std::uint32_t i) {
    view_.connections[i].list_previous = list.last;
    view_.connections[i].list_next = kNoConnection;
    (list.last == kNoConnection ? list.first : view_.connections[list.last].list_next) = i;
    list.last = i;
    ++list.count;
  }

  HEADRACE_HD void unlink(TcpList& list, std::uint32_t i) {
    const TcpConnection& connection = view_.connections[i];
    const std::uint32_t previous = connection.list_previous;
    const std::uint32_t next = connection.list_next;
    (previous == kNoConnection ? list.first : view_.connections[previous].list_next) = next;
    (next == kNoConnection ? list.last : view_.connections[next].list_previous) = previous;
    --list.count;
  }

  TcpView view_;
  std::uint32_t last_ = kNoConnection;
};

}  // namespace headrace::ingest
