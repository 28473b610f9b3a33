#include <fmt/format.h>

#include <array>
#include <string>

#include "headrace/base/error.hpp"
#include "headrace/ingest/builder.hpp"
#include "headrace/ingest/conversion.hpp"
#include "headrace/ingest/copy_way.hpp"
#include "headrace/ingest/receiver.hpp"

namespace headrace::ingest {

namespace {

// Names in the order of the values.
constexpr std::array<std::string_view, 11> kWays{"automatic", "gather",      "bulk",          "block",
                                                 "cub",       "device-copy", "device-copy-2", "device-copy-32",
                                                 "host-copy", "host-copy-2", "host-copy-32"};
constexpr std::array<std::string_view, 7> kConversions{
    "none", "swap2", "swap4", "swap8", "int8-to-float", "int16-to-float", "int16-big-endian-to-float"};
constexpr std::array<std::string_view, 4> kRingAccesses{"automatic", "direct", "slots", "payloads"};
constexpr std::array<std::string_view, 2> kControls{"host", "resident"};
constexpr std::array<std::string_view, 5> kStreamEnds{"finished", "reset", "timed out", "cut", "restarted"};
constexpr std::array<std::string_view, kParseResults> kParseResultNames{
    "ok",        "truncated",  "snapped",      "malformed", "arp",         "not_ip",       "vlan_depth",
    "extension", "routing",    "protocol",     "fragment",  "ip_checksum", "tcp_checksum", "udp_checksum",
    "not_udp",   "other_port", "other_sender", "no_number", "too_long",    "no_place",     "too_many"};

template <class Value, class All>
[[nodiscard]] std::string_view name_of(const All& names, Value value) noexcept {
  const auto index = static_cast<std::size_t>(value);
  return index < names.size() ? names[index] : "unknown";
}

template <class Value, class All>
[[nodiscard]] Value value_of(const All& names, std::string_view text, std::string_view what) {
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i] == text) return static_cast<Value>(i);
  }
  throw UsageError(fmt::format("'{}' is not {}: {}", text, what, fmt::join(names, ", ")));
}

}  // namespace

std::span<const CopyWay> all_copy_ways() noexcept {
  static constexpr auto kAll = [] {
    std::array<CopyWay, kWays.size()> all{};
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<CopyWay>(i);
    return all;
  }();
  return kAll;
}

std::string_view to_string(CopyWay way) noexcept { return name_of(kWays, way); }
CopyWay parse_copy_way(std::string_view text) { return value_of<CopyWay>(kWays, text, "a way to copy packets"); }
std::string_view to_string(Conversion conversion) noexcept { return name_of(kConversions, conversion); }
Conversion parse_conversion(std::string_view text) { return value_of<Conversion>(kConversions, text, "a conversion"); }
std::string_view to_string(RingAccess ring_access) noexcept { return name_of(kRingAccesses, ring_access); }
RingAccess parse_ring_access(std::string_view text) {
  return value_of<RingAccess>(kRingAccesses, text, "a way to read the ring");
}
std::string_view to_string(ParseResult result) noexcept { return name_of(kParseResultNames, result); }
std::string_view to_string(StreamEnd end) noexcept { return name_of(kStreamEnds, end); }
std::string_view to_string(Control control) noexcept { return name_of(kControls, control); }
Control parse_control(std::string_view text) { return value_of<Control>(kControls, text, "a control"); }

std::uint32_t merge_count(CopyWay way) noexcept {
  switch (way) {
    case CopyWay::device_copy_2:
    case CopyWay::host_copy_2: return 2;
    case CopyWay::device_copy_32:
    case CopyWay::host_copy_32: return 32;
    default: return 1;
  }
}

}  // namespace headrace::ingest
