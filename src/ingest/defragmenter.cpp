#include "ingest/defragmenter.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "headrace/base/detail/bytes.hpp"
#include "headrace/ingest/detail/wire.hpp"
#include "ingest/checksum.hpp"
#include "ingest/parse.hpp"

namespace headrace::ingest {

namespace {

constexpr std::size_t kMemoryMost = 4 * kMiB;
/// Approximate memory of a datagram besides its bytes.
constexpr std::size_t kOverhead = 512;
constexpr std::uint64_t kSecond = 1'000'000'000;
constexpr std::uint64_t kTime4 = 30 * kSecond;
constexpr std::uint64_t kTime6 = 60 * kSecond;
constexpr std::uint32_t kPayloadMost = 65535;
constexpr std::size_t kIpv6Bytes = 40;
constexpr std::size_t kFragmentBytes = 8;
constexpr std::uint8_t kHops = 0;
constexpr std::uint8_t kRouting = 43;
constexpr std::uint8_t kFragmentHeader = 44;
constexpr std::uint8_t kDestination = 60;

[[nodiscard]] std::uint64_t load_64(const std::byte* at) noexcept {
  return std::uint64_t{load_be32(at)} << 32 | load_be32(at + 4);
}

}  // namespace

/// A quick check that rules out nearly every packet. True does not prove that the packet is a fragment.
bool Defragmenter::may_be_fragment(const std::byte* bytes, const Packet& packet, Layer layer) noexcept {
  constexpr std::size_t kEthernet = 14;
  const std::size_t at = layer == Layer::ethernet ? kEthernet : 0;
  if (packet.length < at + 20) return false;
  if (layer == Layer::ethernet && load_be16(bytes + 12) != 0x0800) return load_be16(bytes + 12) != 0x0806;
  const std::uint32_t version = load_8(bytes + at) >> 4;
  return version == 4 ? (load_be16(bytes + at + 6) & 0x3FFF) != 0 : version == 6;
}

bool Defragmenter::read(const std::byte* bytes, const Packet& packet, Layer layer, Fragment& fragment,
                        bool& malformed) {
  if (!may_be_fragment(bytes, packet, layer)) return false;
  detail::Rest rest{bytes, 0, packet.length, false, false};
  Headers headers;
  if (layer == Layer::ethernet && detail::parse_ethernet(rest, headers) != ParseResult::ok) return false;
  if (rest.length() < 20) return false;
  const std::uint32_t version = load_8(rest.next()) >> 4;
  fragment.link_bytes = rest.at;
  fragment.four = version == 4;
  const bool is = version == 4   ? read_ipv4(rest.next(), rest.length(), !packet.checksum_verified, fragment, malformed)
                  : version == 6 ? read_ipv6(rest.next(), rest.length(), fragment, malformed)
                                 : false;
  if (!is) return false;
  fragment.header_end += rest.at;
  fragment.header_bytes += rest.at;
  fragment.next_at += rest.at;
  malformed = malformed || packet.truncated || (fragment.more && fragment.length % 8 != 0) || fragment.length == 0 ||
              fragment.begin + fragment.length > kPayloadMost;
  return true;
}

bool Defragmenter::read_ipv4(const std::byte* ip, std::size_t length, bool verify, Fragment& fragment,
                             bool& malformed) {
  const std::uint32_t place = load_be16(ip + 6);
  if ((place & 0x3FFF) == 0) return false;
  const std::size_t header = (load_8(ip) & 0xFU) * 4;
  const std::size_t total = load_be16(ip + 2);
  malformed = header < 20 || total < header || total > length;
  if (malformed) return true;
  malformed = verify && checksum_of(checksum_add(0, ip, static_cast<std::uint32_t>(header))) != 0;
  fragment.key = {{load_64(ip + 12), load_be16(ip + 4), load_8(ip + 9), 4, 0}};
  fragment.header_end = fragment.header_bytes = header;
  fragment.begin = (place & 0x1FFF) * 8;
  fragment.more = (place & 0x2000) != 0;
  fragment.length = static_cast<std::uint32_t>(total - header);
  return true;
}

bool Defragmenter::read_ipv6(const std::byte* ip, std::size_t length, Fragment& fragment, bool& malformed) {
  if (length < kIpv6Bytes) return false;
  std::size_t at = kIpv6Bytes;
  std::size_t next_at = 6;
  std::uint8_t next = load_8(ip + next_at);
  while (next == kHops || next == kRouting || next == kDestination) {
    if (at + 8 > length) return false;
    next_at = at;
    next = load_8(ip + at);
    at += (load_8(ip + at + 1) + 1U) * 8;
  }
  if (next != kFragmentHeader) return false;
  const std::size_t end = kIpv6Bytes + load_be16(ip + 4);
  malformed = at + kFragmentBytes > length || end > length || end < at + kFragmentBytes;
  if (malformed) return true;
  const std::uint32_t place = load_be16(ip + at + 2);
  fragment.key = {{load_64(ip + 8), load_64(ip + 16), load_64(ip + 24), load_64(ip + 32), load_be32(ip + at + 4)}};
  fragment.header_bytes = at;
  fragment.header_end = at + kFragmentBytes;
  fragment.next_at = next_at;
  fragment.next = load_8(ip + at);
  fragment.begin = place & 0xFFF8;
  fragment.more = (place & 1) != 0;
  fragment.length = static_cast<std::uint32_t>(end - fragment.header_end);
  return true;
}

std::size_t Defragmenter::pass(std::span<Packet> packets, const Ring& ring, Layer layer) {
  if (layer == Layer::payload) return packets.size();
  std::size_t kept = 0;
  for (Packet& packet : packets) {
    Fragment fragment;
    bool malformed = false;
    bool hands_on = true;
    if (read(ring.buffer().data() + packet.ring_offset, packet, layer, fragment, malformed)) {
      ++counters_.fragments;
      if (malformed) ++counters_.malformed;
      hands_on = !malformed && take(packet, fragment, ring);
    }
    if (hands_on) packets[kept++] = packet;
  }
  return kept;
}

bool Defragmenter::take(Packet& packet, const Fragment& fragment, const Ring& ring) {
  now_ = std::max(now_, packet.received_ns);
  drop_old(now_);
  const std::byte* const bytes = ring.buffer().data() + packet.ring_offset;
  if (fragment.begin == 0 && !fragment.more) {  // atomic (RFC 6946): it has no other fragments
    Datagram whole{.key = fragment.key, .four = false, .first = fragment, .headers = {}, .parts = {}, .end = {}};
    add(whole, fragment, bytes);
    whole.verified = packet.checksum_verified;
    return write(whole, packet, ring);
  }
  Datagram& datagram = datagram_of(fragment, packet.received_ns);
  const std::size_t before = memory_of(datagram);
  datagram.verified = datagram.verified && packet.checksum_verified;
  if (!datagram.refused) add(datagram, fragment, bytes);
  memory_ += memory_of(datagram) - before;
  const auto which = by_key_.at(fragment.key);
  bool hands_on = false;
  if (datagram.end == datagram.bytes && !datagram.headers.empty()) {
    hands_on = write(datagram, packet, ring);
    drop(which);
  }
  while (memory_ > kMemoryMost) {
    ++counters_.no_memory;
    drop(datagrams_.begin());
  }
  return hands_on;
}

Defragmenter::Datagram& Defragmenter::datagram_of(const Fragment& fragment, std::uint64_t now) {
  const auto found = by_key_.find(fragment.key);
  if (found != by_key_.end()) return *found->second;
  datagrams_.push_back({.key = fragment.key,
                        .begun_ns = now,
                        .four = fragment.four,
                        .first = {},
                        .headers = {},
                        .parts = {},
                        .end = {}});
  by_key_[fragment.key] = std::prev(datagrams_.end());
  memory_ += memory_of(datagrams_.back());
  return datagrams_.back();
}

void Defragmenter::add(Datagram& datagram, const Fragment& fragment, const std::byte* bytes) {
  const std::uint32_t end = fragment.begin + fragment.length;
  auto& parts = datagram.parts;
  const auto end_of = [](const auto& part) { return part.first + static_cast<std::uint32_t>(part.second.size()); };
  auto above = parts.lower_bound(fragment.begin);
  if (above != parts.end() && above->first == fragment.begin && end_of(*above) == end) {
    ++counters_.duplicates;
    return;
  }
  if (above != parts.begin() && end_of(*std::prev(above)) > fragment.begin) --above;
  const bool overlaps = above != parts.end() && above->first < end;
  const bool beyond = datagram.end && (end > *datagram.end || !fragment.more);
  const bool short_end = !fragment.more && !parts.empty() && end_of(*parts.rbegin()) > end;
  if (overlaps || beyond || short_end) return refuse(datagram);
  if (!fragment.more) datagram.end = end;
  if (fragment.begin == 0) {
    datagram.first = fragment;
    datagram.headers.assign(bytes, bytes + fragment.header_bytes);
  }
  const std::byte* const payload = bytes + fragment.header_end;
  parts.try_emplace(above, fragment.begin, payload, payload + fragment.length);
  datagram.bytes += fragment.length;
}

void Defragmenter::refuse(Datagram& datagram) {
  ++counters_.overlapping;
  datagram.refused = true;
  datagram.bytes = 0;
  datagram.parts.clear();
  datagram.headers.clear();
  datagram.end.reset();
}

/// Writes the datagram into the slot of the packet. False if it does not fit, or exceeds the largest IP packet.
bool Defragmenter::write(const Datagram& datagram, Packet& packet, const Ring& ring) {
  const Fragment& first = datagram.first;
  const std::size_t length = datagram.headers.size() + datagram.bytes;
  const std::size_t ip_bytes = length - first.link_bytes;
  const std::size_t slot_end = (packet.ring_offset / ring.slot_stride() + 1) * ring.slot_stride();
  const std::size_t said = first.four ? ip_bytes : ip_bytes - kIpv6Bytes;
  if (length > slot_end - packet.ring_offset || said > kPayloadMost) {
    ++counters_.malformed;
    return false;
  }
  std::byte* const to = ring.buffer().data() + packet.ring_offset;
  std::copy(datagram.headers.begin(), datagram.headers.end(), to);
  std::byte* payload = to + datagram.headers.size();
  for (const auto& [begin, bytes] : datagram.parts) payload = std::copy(bytes.begin(), bytes.end(), payload);
  std::byte* const ip = to + first.link_bytes;
  if (first.four) {
    store_be16(ip + 2, static_cast<std::uint32_t>(said));
    store_be16(ip + 6, 0);
    store_be16(ip + 10, 0);
    store_be16(ip + 10, checksum_of(checksum_add(0, ip, (load_8(ip) & 0xFU) * 4)));
  } else {
    store_be16(ip + 4, static_cast<std::uint32_t>(said));
    store_8(to + first.next_at, first.next);
  }
  packet.length = static_cast<std::uint32_t>(length);
  packet.segment_bytes = 0;
  packet.checksum_verified = datagram.verified;
  ++counters_.datagrams;
  return true;
}

void Defragmenter::drop(Datagrams::iterator which) {
  memory_ -= memory_of(*which);
  by_key_.erase(which->key);
  datagrams_.erase(which);
}

void Defragmenter::drop_old(std::uint64_t now) {
  while (!datagrams_.empty()) {
    const Datagram& oldest = datagrams_.front();
    if (now - std::min(now, oldest.begun_ns) < (oldest.four ? kTime4 : kTime6)) return;
    if (!oldest.refused) ++counters_.timed_out;
    drop(datagrams_.begin());
  }
}

std::size_t Defragmenter::memory_of(const Datagram& datagram) noexcept {
  return kOverhead + datagram.bytes + datagram.parts.size() * kOverhead / 4;
}

FragmentCounters Defragmenter::counters() const {
  FragmentCounters counters = counters_;
  counters.incomplete = static_cast<std::uint64_t>(
      std::count_if(datagrams_.begin(), datagrams_.end(), [](const Datagram& one) { return !one.refused; }));
  return counters;
}

}  // namespace headrace::ingest
