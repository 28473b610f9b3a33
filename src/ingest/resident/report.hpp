#pragma once

#include <cstdint>

#include "ingest/resident/runs.hpp"
#include "ingest/resident/view.hpp"

namespace headrace::ingest::resident {

/// Every thread of the acknowledge role, at most kWindow: writes the counters for the host, which reads them once the
/// command that requested them is done.
template <class Group>
HEADRACE_HD void report(const Group& group, const View& view, Window& window) {
  const TcpShared& shared = *view.tcp.shared;
  std::uint64_t least = kNever;
  for (std::uint32_t i = group.rank(); i < shared.connection_count; i += group.size()) {
    const TcpConnection& connection = view.tcp.connections[i];
    if (connection.receives() && connection.limit != 0) least = lesser(least, connection.window());
  }
  window.window_least[group.rank()] = least;
  group.sync();
  if (group.rank() != 0) return;
  for (std::uint32_t t = 1; t < group.size(); ++t) least = lesser(least, window.window_least[t]);
  *view.window_least = least == kNever ? 0 : least;
  *view.counters = shared.counters;
}

}  // namespace headrace::ingest::resident
