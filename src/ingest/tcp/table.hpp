#pragma once

#include <cstdint>
#include <new>

#include "ingest/tcp/lists.hpp"
#include "ingest/tcp/state.hpp"

namespace headrace::ingest {

/// Connections with streams, found by flow and listed by age. Every connection is in one list.
class TcpTable {
 public:
  HEADRACE_HD explicit TcpTable(const TcpView& view) : view_(view) {}

  [[nodiscard]] HEADRACE_HD std::uint32_t find(const Flow& flow) {
    if (last_ != kNoConnection && in_use(last_) && same_flow(view_.connections[last_].flow, flow)) return last_;
    const std::uint32_t i = detail::find_in_chain(view_.connections, bucket(flow), flow);
    if (i != kNoConnection) last_ = i;
    return i;
  }

  /// The connection that add() removes if none is unused: the oldest in TIME-WAIT, else the oldest that only lacks the
  /// peer's last acknowledgement. kNoConnection: none.
  [[nodiscard]] HEADRACE_HD std::uint32_t next_to_give_way() const {
    const TcpShared& shared = *view_.shared;
    if (shared.unused.count != 0) return kNoConnection;
    return shared.time_wait.count != 0 ? shared.time_wait.first : shared.leaving.first;
  }

  /// Adds an established connection with the agreed parameters. Requires: TcpShared::places().
  [[nodiscard, gnu::noinline]] HEADRACE_HD std::uint32_t add(const TcpAgreement& agreement) {
    TcpShared& shared = *view_.shared;
    if (const std::uint32_t old = next_to_give_way(); old != kNoConnection) remove(old);
    const std::uint32_t i = shared.unused.first;
    detail::unlink(view_.connections, shared.unused, i);
    TcpConnection& connection = *::new (static_cast<void*>(view_.connections + i)) TcpConnection;
    static_cast<TcpAgreement&>(connection) = agreement;
    connection.state = TcpState::established;
    detail::add_to_chain(view_.connections, bucket(connection.flow), i);
    detail::append(view_.connections, shared.established, i);
    return i;
  }

  [[gnu::noinline]] HEADRACE_HD void remove(std::uint32_t i) {
    TcpConnection& connection = view_.connections[i];
    detail::remove_from_chain(view_.connections, bucket(connection.flow), i);
    detail::unlink(view_.connections, list_of(connection), i);
    connection.state = TcpState::unused;
    view_.deadlines[i] = kNever;
    detail::append(view_.connections, view_.shared->unused, i);
  }

  /// Changes the state, and moves the connection to the right list. Also call it after `finished` or `closes` changed.
  [[gnu::noinline]] HEADRACE_HD void move(std::uint32_t i, TcpState state) {
    TcpConnection& connection = view_.connections[i];
    TcpList& from = list_of(connection);
    connection.state = state;
    connection.leaving = connection.finished && connection.closes;
    TcpList& to = list_of(connection);
    if (&from == &to) return;
    detail::unlink(view_.connections, from, i);
    detail::append(view_.connections, to, i);
  }

  [[nodiscard]] HEADRACE_HD bool in_use(std::uint32_t i) const {
    return view_.connections[i].state != TcpState::unused;
  }

 private:
  [[nodiscard]] HEADRACE_HD std::uint32_t& bucket(const Flow& flow) const {
    return view_.buckets[static_cast<std::uint32_t>(detail::hash_of(*view_.shared, flow)) & view_.shared->bucket_mask];
  }

  [[nodiscard]] HEADRACE_HD TcpList& list_of(const TcpConnection& connection) const {
    TcpShared& shared = *view_.shared;
    if (connection.state == TcpState::unused) return shared.unused;
    if (connection.state == TcpState::time_wait) return shared.time_wait;
    return connection.leaving ? shared.leaving : shared.established;
  }

  TcpView view_;
  std::uint32_t last_ = kNoConnection;
};

}  // namespace headrace::ingest
