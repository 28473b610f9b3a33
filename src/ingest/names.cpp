#include <array>

#include "base/names.hpp"
#include "headrace/ingest/builder.hpp"
#include "headrace/ingest/detail/conversion.hpp"
#include "headrace/ingest/detail/copy_way.hpp"
#include "headrace/ingest/receiver.hpp"

namespace headrace::ingest {

namespace {

constexpr auto kWays = names_of<CopyWay>("a way to copy packets", {{CopyWay::automatic, "automatic"},
                                                                   {CopyWay::gather, "gather"},
                                                                   {CopyWay::bulk, "bulk"},
                                                                   {CopyWay::block, "block"},
                                                                   {CopyWay::cub, "cub"},
                                                                   {CopyWay::device_copy, "device-copy"},
                                                                   {CopyWay::device_copy_2, "device-copy-2"},
                                                                   {CopyWay::device_copy_32, "device-copy-32"},
                                                                   {CopyWay::host_copy, "host-copy"},
                                                                   {CopyWay::host_copy_2, "host-copy-2"},
                                                                   {CopyWay::host_copy_32, "host-copy-32"}});
constexpr auto kConversions =
    names_of<Conversion>("a conversion", {{Conversion::none, "none"},
                                          {Conversion::swap2, "swap2"},
                                          {Conversion::swap4, "swap4"},
                                          {Conversion::swap8, "swap8"},
                                          {Conversion::int8_to_float, "int8-to-float"},
                                          {Conversion::int16_to_float, "int16-to-float"},
                                          {Conversion::int16_big_endian_to_float, "int16-big-endian-to-float"}});
constexpr auto kRingAccesses = names_of<RingAccess>("a way to read the ring", {{RingAccess::automatic, "automatic"},
                                                                               {RingAccess::direct, "direct"},
                                                                               {RingAccess::slots, "slots"},
                                                                               {RingAccess::payloads, "payloads"}});
constexpr auto kControls = names_of<Control>("a control", {{Control::host, "host"}, {Control::resident, "resident"}});
constexpr auto kStreamEnds = names_of<StreamEnd>("an end of a stream", {{StreamEnd::finished, "finished"},
                                                                        {StreamEnd::reset, "reset"},
                                                                        {StreamEnd::timed_out, "timed out"},
                                                                        {StreamEnd::cut, "cut"},
                                                                        {StreamEnd::restarted, "restarted"}});
constexpr auto kParsed = names_of<ParseResult>("a result of parsing", {{ParseResult::ok, "ok"},
                                                                       {ParseResult::truncated, "truncated"},
                                                                       {ParseResult::snapped, "snapped"},
                                                                       {ParseResult::malformed, "malformed"},
                                                                       {ParseResult::arp, "arp"},
                                                                       {ParseResult::not_ip, "not_ip"},
                                                                       {ParseResult::vlan_depth, "vlan_depth"},
                                                                       {ParseResult::extension, "extension"},
                                                                       {ParseResult::routing, "routing"},
                                                                       {ParseResult::protocol, "protocol"},
                                                                       {ParseResult::fragment, "fragment"},
                                                                       {ParseResult::ip_checksum, "ip_checksum"},
                                                                       {ParseResult::tcp_checksum, "tcp_checksum"},
                                                                       {ParseResult::udp_checksum, "udp_checksum"},
                                                                       {ParseResult::not_udp, "not_udp"},
                                                                       {ParseResult::other_port, "other_port"},
                                                                       {ParseResult::other_sender, "other_sender"},
                                                                       {ParseResult::no_number, "no_number"},
                                                                       {ParseResult::too_long, "too_long"},
                                                                       {ParseResult::no_place, "no_place"},
                                                                       {ParseResult::too_many, "too_many"}});
static_assert(kParsed.all().size() == kParseResults);

}  // namespace

std::span<const CopyWay> all_copy_ways() noexcept {
  static constexpr auto kAll = [] {
    std::array<CopyWay, kWays.all().size()> all{};
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = kWays.all()[i].value;
    return all;
  }();
  return kAll;
}

std::string_view to_string(CopyWay way) noexcept { return kWays.of(way); }
CopyWay parse_copy_way(std::string_view text) { return kWays.parse(text); }
std::string_view to_string(Conversion conversion) noexcept { return kConversions.of(conversion); }
Conversion parse_conversion(std::string_view text) { return kConversions.parse(text); }
std::string_view to_string(RingAccess ring_access) noexcept { return kRingAccesses.of(ring_access); }
RingAccess parse_ring_access(std::string_view text) { return kRingAccesses.parse(text); }
std::string_view to_string(ParseResult result) noexcept { return kParsed.of(result); }
std::string_view to_string(StreamEnd end) noexcept { return kStreamEnds.of(end); }
std::string_view to_string(Control control) noexcept { return kControls.of(control); }
Control parse_control(std::string_view text) { return kControls.parse(text); }

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
