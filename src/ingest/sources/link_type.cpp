#include "ingest/sources/link_type.hpp"

#include <fmt/format.h>

#include <array>
#include <string_view>

#include "headrace/base/error.hpp"
#include "ingest/sources/headers.hpp"

namespace headrace::ingest {

namespace {

struct Named {
  std::uint32_t link_type;
  std::string_view name;
};

/// Names of other common link types, for the error message.
constexpr std::array<Named, 14> kOthers{{{9, "PPP"},
                                         {50, "PPP over HDLC"},
                                         {51, "PPPoE"},
                                         {104, "Cisco HDLC"},
                                         {105, "IEEE 802.11"},
                                         {107, "Frame Relay"},
                                         {119, "Prism 802.11"},
                                         {127, "802.11 with radiotap"},
                                         {187, "Bluetooth HCI H4"},
                                         {189, "USB, Linux"},
                                         {195, "IEEE 802.15.4"},
                                         {220, "USB, Linux, padded"},
                                         {247, "InfiniBand"},
                                         {253, "netlink"}}};

}  // namespace

LinkFraming framing_of(std::uint32_t link_type, const std::string& where) {
  switch (link_type) {
    case 1: return {.layer = Layer::ethernet, .header_bytes = kEthernetBytes};
    case 0:                                                     // BSD loopback, the capturing machine's byte order
    case 108: return {.layer = Layer::ip, .header_bytes = 4};   // OpenBSD loopback
    case 12:                                                    // raw IP, as most systems write it
    case 14:                                                    // as OpenBSD does
    case 101:                                                   // as files should have it
    case 228:                                                   // IPv4
    case 229: return {.layer = Layer::ip, .header_bytes = 0};   // IPv6
    case 113: return {.layer = Layer::ip, .header_bytes = 16};  // Linux cooked
    case 276: return {.layer = Layer::ip, .header_bytes = 20};  // Linux cooked, v2
    default: break;
  }
  std::string_view name = "unknown";
  for (const Named& other : kOthers) {
    if (other.link_type == link_type) name = other.name;
  }
  throw DataError(
      fmt::format("{}: link type {} ({}) is not supported; Ethernet, raw IP, Linux cooked and BSD loopback are", where,
                  link_type, name));
}

}  // namespace headrace::ingest
