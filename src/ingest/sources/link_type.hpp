#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "headrace/ingest/detail/packet.hpp"

namespace headrace::ingest {

/// The framing of packets of a link type (tcpdump.org/linktypes.html).
struct LinkFraming {
  Layer layer = Layer::ip;
  std::size_t header_bytes = 0;  ///< Bytes before the IP header.
};

/// Throws DataError "<where>: link type 105 (IEEE 802.11) is not supported; ..." for any other than Ethernet, raw IP,
/// Linux cooked and BSD loopback.
[[nodiscard]] LinkFraming framing_of(std::uint32_t link_type, const std::string& where);

}  // namespace headrace::ingest
