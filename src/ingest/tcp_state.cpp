#include "headrace/ingest/tcp_state.hpp"

#include <bit>
#include <memory>
#include <type_traits>

#include "headrace/base/bytes.hpp"
#include "ingest/require.hpp"

namespace headrace::ingest {

namespace {

static_assert(std::is_trivially_copyable_v<TcpConnection> && std::is_trivially_copyable_v<TcpShared>);

constexpr std::size_t kAlignment = 64;
constexpr std::uint32_t kConnectionsMax = 65536;

/// Where each part of the state begins, in bytes.
struct Layout {
  std::size_t connections;
  std::size_t deadlines;
  std::size_t buckets;
  std::size_t end;
  std::uint32_t bucket_count;
};

Layout layout_of(std::uint32_t connections) {
  Layout layout{};
  layout.bucket_count = std::bit_ceil(connections * 2);
  layout.connections = align_up(sizeof(TcpShared), kAlignment);
  layout.deadlines = align_up(layout.connections + connections * sizeof(TcpConnection), kAlignment);
  layout.buckets = align_up(layout.deadlines + connections * sizeof(std::uint64_t), kAlignment);
  layout.end = align_up(layout.buckets + layout.bucket_count * sizeof(std::uint32_t), kAlignment);
  return layout;
}

}  // namespace

void check(const TcpConfig& config) {
  constexpr std::string_view kWhat = "TCP";
  constexpr std::uint64_t kWindowMax = std::uint64_t{0xFFFF} << 14;
  require(config.mtu >= 576, kWhat, "mtu", config.mtu, "576 to 65,535");
  require(config.window_bytes_max >= 1 && config.window_bytes_max <= kWindowMax, kWhat, "window_bytes_max",
          config.window_bytes_max, "1 to 1,073,725,440");
  require(config.segments_per_acknowledgement >= 1, kWhat, "segments_per_acknowledgement",
          config.segments_per_acknowledgement, "1 or more");
  require(config.acknowledgement_delay <= 500 * TcpConfig::kMs, kWhat, "acknowledgement_delay",
          config.acknowledgement_delay, "at most 500 ms");
  require(config.retransmit_first >= 1 && config.retransmit_first <= 60 * TcpConfig::kSecond, kWhat, "retransmit_first",
          config.retransmit_first, "1 ns to 60 s");
  require(config.retransmits_max <= 16, kWhat, "retransmits_max", config.retransmits_max, "0 to 16");
  require(config.timestamp_tick >= 1 && config.timestamp_tick <= TcpConfig::kSecond, kWhat, "timestamp_tick",
          config.timestamp_tick, "1 ns to 1 s");
  require(config.half_open_max >= 1, kWhat, "half_open_max", config.half_open_max, "1 or more");
}

std::size_t tcp_state_bytes(std::uint32_t connections) { return layout_of(connections).end; }

TcpView tcp_view(void* memory, std::uint32_t connections) {
  auto* const bytes = static_cast<std::byte*>(memory);
  const Layout layout = layout_of(connections);
  return {reinterpret_cast<TcpShared*>(bytes), reinterpret_cast<TcpConnection*>(bytes + layout.connections),
          reinterpret_cast<std::uint64_t*>(bytes + layout.deadlines),
          reinterpret_cast<std::uint32_t*>(bytes + layout.buckets)};
}

TcpView make_tcp_state(void* memory, std::uint32_t connections, const TcpConfig& config) {
  check(config);
  require(connections >= 1 && connections <= kConnectionsMax, "TCP", "the number of connections", connections,
          "1 to 65,536");
  const TcpView view = tcp_view(memory, connections);
  const std::uint32_t buckets = layout_of(connections).bucket_count;
  auto* const shared = std::construct_at(view.shared);
  shared->config = config;
  shared->connection_count = connections;
  shared->bucket_mask = buckets - 1;
  shared->unused = {0, connections - 1, connections};
  for (std::uint32_t i = 0; i < connections; ++i) {
    auto* const connection = std::construct_at(view.connections + i);
    connection->list_previous = i == 0 ? kNoConnection : i - 1;
    connection->list_next = i + 1 == connections ? kNoConnection : i + 1;
    view.deadlines[i] = kNever;
  }
  for (std::uint32_t i = 0; i < buckets; ++i) view.buckets[i] = kNoConnection;
  return view;
}

}  // namespace headrace::ingest
