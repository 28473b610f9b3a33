#pragma once

#include <cstdint>

#include "headrace/ingest/detail/headers.hpp"
#include "headrace/ingest/detail/siphash.hpp"
#include "ingest/tcp/state.hpp"

/// The parameters that a SYN determines for its connection.
namespace headrace::ingest::detail {

/// RFC 6528: a clock of 4 us and a keyed hash of both ends. The timestamps' offset is another such hash.
HEADRACE_HD inline void choose_numbers(TcpRequest& request, const TcpConfig& config, const Headers& headers,
                                       std::uint64_t now) {
  std::uint64_t words[Flow::kWords + 1];
  std::uint64_t flow[Flow::kWords];
  headers.flow.words(flow);
  for (std::uint32_t w = 0; w < Flow::kWords; ++w) words[w] = flow[w];
  words[Flow::kWords] = 1;  // so that it differs from the hash table's hash
  const std::uint64_t hash = siphash(config.key, words, Flow::kWords + 1);
  request.initial_local = static_cast<std::uint32_t>(hash) + static_cast<std::uint32_t>(now / 4000);
  request.timestamp_offset = static_cast<std::uint32_t>(hash >> 32);
  request.initial_remote = headers.sequence;
}

/// RFC 9293 3.7.1. Raises an MSS that leaves no room beside the options.
[[nodiscard]] HEADRACE_HD inline std::uint16_t peer_mss(const Headers& headers) {
  constexpr std::uint16_t kLeast = 64;
  const std::uint16_t unsaid = headers.flow.version == 4 ? 536 : 1220;
  const std::uint16_t said = headers.options.mss == 0 ? unsaid : headers.options.mss;
  return said < kLeast ? kLeast : said;
}

/// Chooses the options that both sides support.
HEADRACE_HD inline void agree(TcpRequest& request, const TcpConfig& config, const Headers& headers, std::uint64_t now) {
  const TcpOptions& options = headers.options;
  request.mss = static_cast<std::uint16_t>(config.mtu - (headers.flow.version == 4 ? 40U : 60U));
  request.peer_mss = peer_mss(headers);
  request.sack = config.sack && options.sack_permitted;
  request.timestamps = config.timestamps && options.has_timestamps;
  request.timestamp_recent = options.timestamp;
  request.timestamp_recent_at = now;
  request.scales = options.has_window_scale;
  request.peer_window = headers.window;
  std::uint64_t largest = 0xFFFF;
  if (request.scales) {
    request.peer_scale = options.window_scale;
    for (; largest < config.window_bytes_max && request.scale < 14; largest = std::uint64_t{0xFFFF} << request.scale) {
      ++request.scale;
    }
  }
  request.window_max = static_cast<std::uint32_t>(lesser(config.window_bytes_max, largest));
}

}  // namespace headrace::ingest::detail
