#include "ingest/tcp/state.hpp"

#include <algorithm>
#include <bit>
#include <memory>
#include <type_traits>

#include "headrace/base/detail/bytes.hpp"
#include "ingest/require.hpp"

namespace headrace::ingest {

namespace {

static_assert(std::is_trivially_copyable_v<TcpConnection> && std::is_trivially_copyable_v<TcpRequest> &&
              std::is_trivially_copyable_v<TcpShared>);

constexpr std::size_t kAlignment = 64;
constexpr std::uint32_t kConnectionsMax = 131'072;
constexpr std::uint32_t kRequestsMax = 1U << 20;

/// Where each part of the state begins, in bytes.
struct Layout {
  std::size_t connections;
  std::size_t deadlines;
  std::size_t buckets;
  std::size_t requests;
  std::size_t request_buckets;
  std::size_t end;
  std::uint32_t bucket_count;
  std::uint32_t request_bucket_count;
};

/// The number of requests: every connection of the backlog has a place, however many are half-open.
std::uint32_t requests_of(const TcpConfig& config) { return config.half_open_max + config.backlog; }

Layout layout_of(std::uint32_t connections, const TcpConfig& config) {
  Layout layout{};
  layout.bucket_count = std::bit_ceil(connections * 2);
  layout.connections = align_up(sizeof(TcpShared), kAlignment);
  layout.deadlines = align_up(layout.connections + connections * sizeof(TcpConnection), kAlignment);
  layout.buckets = align_up(layout.deadlines + connections * sizeof(std::uint64_t), kAlignment);
  layout.requests = align_up(layout.buckets + layout.bucket_count * sizeof(std::uint32_t), kAlignment);
  layout.request_bucket_count = std::bit_ceil(requests_of(config) * 2);
  layout.request_buckets = align_up(layout.requests + requests_of(config) * sizeof(TcpRequest), kAlignment);
  layout.end = align_up(layout.request_buckets + layout.request_bucket_count * sizeof(std::uint32_t), kAlignment);
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
  static_assert(TcpRequest::kTriesMax == 1 + 16, "a list of half-open connections for each time SYN+ACK is sent");
  require(config.retransmits_max <= 16, kWhat, "retransmits_max", config.retransmits_max, "0 to 16");
  require(config.timestamp_tick >= 1 && config.timestamp_tick <= TcpConfig::kSecond, kWhat, "timestamp_tick",
          config.timestamp_tick, "1 ns to 1 s");
  require(config.half_open_max >= 1 && config.half_open_max <= kRequestsMax, kWhat, "half_open_max",
          config.half_open_max, "1 to 1,048,576");
  require(config.backlog >= 1 && config.backlog <= kRequestsMax, kWhat, "backlog", config.backlog, "1 to 1,048,576");
}

std::size_t tcp_state_bytes(std::uint32_t connections, const TcpConfig& config) {
  return layout_of(connections, config).end;
}

TcpView tcp_view(void* memory, std::uint32_t connections, const TcpConfig& config) {
  auto* const bytes = static_cast<std::byte*>(memory);
  const Layout layout = layout_of(connections, config);
  return {reinterpret_cast<TcpShared*>(bytes),
          reinterpret_cast<TcpConnection*>(bytes + layout.connections),
          reinterpret_cast<std::uint64_t*>(bytes + layout.deadlines),
          reinterpret_cast<std::uint32_t*>(bytes + layout.buckets),
          reinterpret_cast<TcpRequest*>(bytes + layout.requests),
          reinterpret_cast<std::uint32_t*>(bytes + layout.request_buckets)};
}

namespace {

/// Makes `count` unused entries, all in the list of unused ones.
template <class Entry>
void make_unused(Entry* entries, std::uint32_t count, TcpList& unused) {
  unused = {0, count - 1, count};
  for (std::uint32_t i = 0; i < count; ++i) {
    auto* const entry = std::construct_at(entries + i);
    entry->list_previous = i == 0 ? kNoConnection : i - 1;
    entry->list_next = i + 1 == count ? kNoConnection : i + 1;
  }
}

}  // namespace

TcpView make_tcp_state(void* memory, std::uint32_t connections, const TcpConfig& config) {
  check(config);
  require(connections >= 1 && connections <= kConnectionsMax, "TCP", "the number of connections", connections,
          "1 to 131,072");
  const TcpView view = tcp_view(memory, connections, config);
  const Layout layout = layout_of(connections, config);
  auto* const shared = std::construct_at(view.shared);
  shared->config = config;
  shared->connection_count = connections;
  shared->bucket_mask = layout.bucket_count - 1;
  shared->request_bucket_mask = layout.request_bucket_count - 1;
  shared->streams_limit = shared->streams_expected = config.initial_streams;
  make_unused(view.connections, connections, shared->unused);
  make_unused(view.requests, requests_of(config), shared->requests.unused);
  std::fill_n(view.deadlines, connections, kNever);
  std::fill_n(view.buckets, layout.bucket_count, kNoConnection);
  std::fill_n(view.request_buckets, layout.request_bucket_count, kNoConnection);
  return view;
}

}  // namespace headrace::ingest
