#pragma once

#include <cstddef>

#include "headrace/ingest/detail/headers.hpp"
#include "headrace/ingest/detail/packet.hpp"

namespace headrace::ingest {

/// The bytes to leave free at the start of a Ring's slots so that payloads begin on lines of 64 bytes, which a copy
/// engine reads fastest (RingAccess::automatic). TCP is assumed to have timestamps, as Linux sends it.
/// @param own_header_bytes  bytes at the start of each payload that do not go into frames.
/// @param ip_version  4 or 6.
[[nodiscard]] constexpr std::size_t slot_lead(Layer layer, Transport transport, std::size_t own_header_bytes = 0,
                                              int ip_version = 4) {
  constexpr std::size_t kLine = 64;
  constexpr std::size_t kEthernet = 14;
  std::size_t before = own_header_bytes;
  if (layer == Layer::ethernet) before += kEthernet;
  if (layer != Layer::payload) before += (ip_version == 4 ? 20 : 40) + (transport == Transport::tcp ? 32 : 8);
  return (kLine - before % kLine) % kLine;
}

}  // namespace headrace::ingest
