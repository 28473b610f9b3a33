#include "headrace/ingest/detail/headers.hpp"

#include <algorithm>
#include <array>
#include <random>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "headrace/ingest/detail/siphash.hpp"
#include "tests/ingest_peer.hpp"

namespace headrace::ingest::testing {
namespace {

ParseResult parse(const Bytes& bytes, Headers& headers, Layer layer = Layer::ip, Packet packet = {}) {
  packet.length = static_cast<std::uint32_t>(bytes.size());
  const Bytes exact(bytes);  // so that a sanitizer detects a read past the end
  return parse_headers(exact.data(), packet, layer, headers);
}

Bytes ethernet(std::vector<std::uint32_t> tags, std::uint32_t type, const Bytes& rest) {
  Bytes bytes;
  put(bytes, 0x020000000001, 6);
  put(bytes, 0x020000000002, 6);
  for (const std::uint32_t tag : tags) {
    put(bytes, tag, 2);
    put(bytes, 42, 2);
  }
  put(bytes, type, 2);
  return bytes + rest;
}

Segment some_segment() {
  return {.sequence = 0xFFFFFFF0,
          .acknowledgement = 77,
          .flags = kAck | tcp_flag::kPsh,
          .window = 513,
          .payload = pattern(0, 101),
          .options = syn_options(1400, 9, true) + timestamps(5, 6)};
}

auto fields(const Headers& headers) {
  const Flow& flow = headers.flow;
  const auto words = [](const std::uint32_t (&of)[4]) { return std::array{of[0], of[1], of[2], of[3]}; };
  const TcpOptions& options = headers.options;
  return std::tuple(std::tuple(flow.version, words(flow.remote), words(flow.local), flow.remote_port, flow.local_port),
                    std::tuple(headers.transport, headers.link_length, headers.payload_offset, headers.payload_length),
                    std::tuple(headers.sequence, headers.acknowledgement, headers.flags, headers.window),
                    std::tuple(options.mss, options.has_window_scale, options.window_scale, options.sack_permitted,
                               options.has_timestamps, options.timestamp, options.timestamp_echo));
}

// If the first bytes of a packet are said to hold its headers, no other byte changes what the parser reads of them.
TEST(IngestHeaders, WhatLiesBehindTheHeadersIsNotRead) {
  std::mt19937 random(17);
  const Bytes four = tcp_packet({}, some_segment());
  const Bytes six = tcp_packet({.version = 6}, some_segment());
  const Bytes bare = tcp_packet({}, {.flags = kAck, .payload = pattern(0, 200)});
  const std::vector<std::pair<Bytes, Layer>> kinds{
      {four, Layer::ip},
      {six, Layer::ip},
      {bare, Layer::ip},
      {udp_packet({}, pattern(0, 90)), Layer::ip},
      {ethernet({}, 0x0800, four), Layer::ethernet},
      {ethernet({}, 0x86DD, six), Layer::ethernet},
      {ethernet({0x8100}, 0x0800, bare), Layer::ethernet},
      {ethernet({}, 0x86DD, four), Layer::ethernet},
  };
  std::size_t held = 0;
  for (int round = 0; round < 3000; ++round) {
    auto [bytes, layer] = kinds[random() % kinds.size()];
    for (std::uint32_t flips = random() % 4; flips > 0; --flips) bytes[random() % 80] = std::byte(random());
    const auto length = static_cast<std::uint32_t>(bytes.size());
    for (std::uint32_t count = 0; count <= 113; ++count) {
      const Bytes near(bytes.begin(),
                       bytes.begin() + static_cast<std::ptrdiff_t>(std::min<std::uint32_t>(count, length)));
      if (!headers_lie_within(near.data(), static_cast<std::uint32_t>(near.size()), layer)) continue;
      ++held;
      Bytes changed = bytes;
      for (std::size_t i = count; i < changed.size(); ++i) changed[i] = ~changed[i];
      const Packet packet{.length = length, .checksum_verified = true};
      Headers expected;
      Headers found;
      ASSERT_EQ(parse_headers(bytes.data(), packet, layer, expected),
                parse_headers(changed.data(), packet, layer, found));
      ASSERT_EQ(fields(expected), fields(found)) << "of " << count << " bytes";
    }
  }
  EXPECT_GT(held, 50'000U);
}

TEST(IngestHeaders, PlainTcpLiesWithinItsHeaders) {
  const Bytes bare = tcp_packet({}, {.flags = kAck, .payload = pattern(0, 200)});
  EXPECT_TRUE(headers_lie_within(bare.data(), 40, Layer::ip));
  EXPECT_FALSE(headers_lie_within(bare.data(), 39, Layer::ip));
  const Bytes six = ethernet({}, 0x86DD, tcp_packet({.version = 6}, {.flags = kAck, .options = timestamps(5, 6)}));
  EXPECT_TRUE(headers_lie_within(six.data(), 86, Layer::ethernet));
  EXPECT_FALSE(headers_lie_within(six.data(), 85, Layer::ethernet));
  const Bytes tagged = ethernet({0x8100}, 0x0800, bare);
  EXPECT_FALSE(headers_lie_within(tagged.data(), 100, Layer::ethernet));
}

TEST(IngestHeaders, TcpOverBothVersions) {
  for (const std::uint32_t version : {4U, 6U}) {
    Headers headers;
    const Bytes packet = tcp_packet({.version = version}, some_segment());
    ASSERT_EQ(parse(packet, headers), ParseResult::ok) << version;
    EXPECT_EQ(headers.flow.version, version);
    EXPECT_EQ(headers.flow.remote_port, 40000);
    EXPECT_EQ(headers.flow.local_port, 9000);
    EXPECT_EQ(headers.transport, Transport::tcp);
    EXPECT_EQ(headers.sequence, 0xFFFFFFF0U);
    EXPECT_EQ(headers.acknowledgement, 77U);
    EXPECT_EQ(headers.flags, kAck | tcp_flag::kPsh);
    EXPECT_EQ(headers.window, 513);
    EXPECT_EQ(headers.payload_length, 101U);
    EXPECT_EQ(headers.payload_offset, packet.size() - 101);
    EXPECT_EQ(headers.options.mss, 1400);
    EXPECT_TRUE(headers.options.sack_permitted);
    EXPECT_TRUE(headers.options.has_window_scale);
    EXPECT_EQ(headers.options.window_scale, 9);
    EXPECT_TRUE(headers.options.has_timestamps);
    EXPECT_EQ(headers.options.timestamp, 5U);
    EXPECT_EQ(headers.options.timestamp_echo, 6U);
  }
}

TEST(IngestHeaders, EthernetWithTagsAndPadding) {
  const std::vector<std::vector<std::uint32_t>> all_tags = {
      {}, {0x8100}, {0x88A8, 0x8100}, {0x9100, 0x8100}, {0x88A8, 0x88A8, 0x8100}, {0x9100, 0x9100, 0x9100}};
  for (const auto& tags : all_tags) {
    Headers headers;
    const Bytes ip = tcp_packet({}, {.flags = kAck, .payload = pattern(0, 1)});
    const Bytes frame = ethernet(tags, 0x0800, ip) + Bytes(19);
    ASSERT_EQ(parse(frame, headers, Layer::ethernet), ParseResult::ok);
    EXPECT_EQ(headers.link_length, 14 + 4 * tags.size());
    EXPECT_EQ(headers.payload_length, 1U);
  }
  Headers headers;
  EXPECT_EQ(parse(ethernet({}, 0x0806, Bytes(28)), headers, Layer::ethernet), ParseResult::arp);
  EXPECT_EQ(parse(ethernet({0x9100, 0x8100, 0x8100, 0x8100}, 0x0800, {}), headers, Layer::ethernet),
            ParseResult::vlan_depth);
  EXPECT_EQ(parse(ethernet({}, 0x88CC, Bytes(28)), headers, Layer::ethernet), ParseResult::not_ip);
}

TEST(IngestHeaders, EveryLengthThatIsTooShortIsRefused) {
  for (const std::uint32_t version : {4U, 6U}) {
    const Bytes whole = tcp_packet({.version = version}, some_segment());
    for (std::size_t length = 0; length < whole.size(); ++length) {
      Headers headers;
      EXPECT_EQ(parse(Bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length)), headers),
                ParseResult::truncated)
          << length;
    }
    Headers headers;
    EXPECT_EQ(parse(whole, headers, Layer::ip, {.truncated = true}), ParseResult::snapped);
  }
}

// The sum is that of the RFC. It reveals any single flipped bit after the addresses' protocol.
TEST(IngestHeaders, ChecksumsAreVerifiedUnlessTheSourceHas) {
  for (const std::uint32_t version : {4U, 6U}) {
    for (const bool udp : {false, true}) {
      const Peer peer{.version = version};
      const Bytes whole = udp ? udp_packet(peer, pattern(0, 33)) : tcp_packet(peer, some_segment());
      const std::size_t first = version == 4 ? 12 : 8;
      for (std::size_t at = first; at < whole.size(); ++at) {
        Bytes broken = whole;
        broken[at] ^= std::byte{0x10};
        Headers headers;
        EXPECT_NE(parse(broken, headers), ParseResult::ok) << at;
      }
      Bytes broken = whole;
      broken.back() ^= std::byte{1};
      Headers headers;
      EXPECT_EQ(parse(broken, headers), udp ? ParseResult::udp_checksum : ParseResult::tcp_checksum);
      EXPECT_EQ(parse(broken, headers, Layer::ip, {.checksum_verified = true}), ParseResult::ok);
      if (version == 6) continue;
      broken = whole;
      broken[8] ^= std::byte{1};  // time to live
      EXPECT_EQ(parse(broken, headers), ParseResult::ip_checksum);
    }
  }
}

TEST(IngestHeaders, EveryResultHasAName) {
  std::set<std::string_view> names;
  for (std::uint32_t i = 0; i < kParseResults; ++i) names.insert(to_string(static_cast<ParseResult>(i)));
  EXPECT_EQ(names.size(), kParseResults);
  EXPECT_EQ(names.count("unknown"), 0U);
  EXPECT_EQ(to_string(ParseResult::too_many), "too_many");
  EXPECT_EQ(to_string(static_cast<ParseResult>(kParseResults)), "unknown");
}

TEST(IngestHeaders, UdpWithoutChecksumOnlyOverIpv4) {
  for (const std::uint32_t version : {4U, 6U}) {
    Bytes packet = udp_packet({.version = version}, pattern(0, 10));
    store_be16(packet.data() + (version == 4 ? 20 : 40) + 6, 0);
    Headers headers;
    EXPECT_EQ(parse(packet, headers), version == 4 ? ParseResult::ok : ParseResult::udp_checksum);
  }
}

TEST(IngestHeaders, FragmentsAreRefused) {
  for (const std::uint32_t field : {0x2000U, 0x0001U, 0x6000U}) {
    Bytes packet = tcp_packet({}, some_segment());
    store_be16(packet.data() + 6, field);
    store_be16(packet.data() + 10, 0);
    store_be16(packet.data() + 10, checksum_of(checksum_add(0, packet.data(), 20)));
    Headers headers;
    EXPECT_EQ(parse(packet, headers), ParseResult::fragment) << field;
  }
}

TEST(IngestHeaders, Ipv4OptionsAndIpv6ExtensionsAreSkipped) {
  const Bytes plain = tcp_packet({}, some_segment());
  Bytes with_options(plain.begin(), plain.begin() + 20);
  put(with_options, 0x01010101, 4);
  with_options.insert(with_options.end(), plain.begin() + 20, plain.end());
  with_options[0] = std::byte{0x46};
  store_be16(with_options.data() + 2, static_cast<std::uint32_t>(with_options.size()));
  store_be16(with_options.data() + 10, 0);
  store_be16(with_options.data() + 10, checksum_of(checksum_add(0, with_options.data(), 24)));
  Headers headers;
  ASSERT_EQ(parse(with_options, headers), ParseResult::ok);
  EXPECT_EQ(headers.payload_length, 101U);

  const Bytes six = tcp_packet({.version = 6}, some_segment());
  const auto extended = [&](std::uint32_t kind, std::uint32_t next, int times) {
    Bytes made(six.begin(), six.begin() + 40);
    made[6] = static_cast<std::byte>(kind);
    for (int i = 0; i < times; ++i) {
      put(made, (i + 1 < times ? kind : next) << 8, 2);
      put(made, 0, 6);
    }
    made.insert(made.end(), six.begin() + 40, six.end());
    store_be16(made.data() + 4, static_cast<std::uint32_t>(made.size() - 40));
    return made;
  };
  for (const std::uint32_t kind : {0U, 60U}) {
    ASSERT_EQ(parse(extended(kind, 6, 2), headers), ParseResult::ok) << kind;
    EXPECT_EQ(headers.payload_length, 101U);
  }
  EXPECT_EQ(parse(extended(60, 6, 9), headers), ParseResult::extension);
  for (const std::uint32_t kind : {50U, 51U, 135U}) {
    EXPECT_EQ(parse(extended(kind, 6, 1), headers), ParseResult::extension) << kind;
  }
  // A routing header whose segments all lie after the packet, and a fragment that is the whole packet.
  for (const std::uint32_t kind : {43U, 44U}) {
    ASSERT_EQ(parse(extended(kind, 6, 1), headers), ParseResult::ok) << kind;
    EXPECT_EQ(headers.payload_length, 101U);
  }
  Bytes on_its_way = extended(43, 6, 1);
  on_its_way[43] = std::byte{1};
  EXPECT_EQ(parse(on_its_way, headers), ParseResult::routing);
  for (const std::uint32_t field : {1U, 8U, 0xFFF8U, 0xFFF9U}) {  // more to follow, or not the first
    Bytes fragment = extended(44, 6, 1);
    store_be16(fragment.data() + 42, field);
    EXPECT_EQ(parse(fragment, headers), ParseResult::fragment) << field;
  }
}

TEST(IngestHeaders, LengthsThatContradictAreRefused) {
  const Packet verified{.checksum_verified = true};
  const auto changed = [](std::size_t at, std::uint32_t to) {
    Bytes packet = tcp_packet({}, some_segment());
    packet[at] = static_cast<std::byte>(to);
    return packet;
  };
  Headers headers;
  EXPECT_EQ(parse(changed(0, 0x44), headers, Layer::ip, verified), ParseResult::malformed);   // IPv4 header of 16
  EXPECT_EQ(parse(changed(0, 0x55), headers, Layer::ip, verified), ParseResult::not_ip);      // IPv5
  EXPECT_EQ(parse(changed(3, 19), headers, Layer::ip, verified), ParseResult::malformed);     // total length
  EXPECT_EQ(parse(changed(2, 0x40), headers, Layer::ip, verified), ParseResult::truncated);   // total length
  EXPECT_EQ(parse(changed(32, 0x40), headers, Layer::ip, verified), ParseResult::malformed);  // TCP header of 16
  EXPECT_EQ(parse(changed(9, 1), headers, Layer::ip, verified), ParseResult::protocol);       // ICMP
  Bytes udp = udp_packet({}, pattern(0, 10));
  store_be16(udp.data() + 24, 7);
  EXPECT_EQ(parse(udp, headers, Layer::ip, verified), ParseResult::malformed);
  store_be16(udp.data() + 24, 19);
  EXPECT_EQ(parse(udp, headers, Layer::ip, verified), ParseResult::truncated);
}

TEST(IngestHeaders, OptionsThatCannotBeReadEndTheReading) {
  for (const std::vector<std::uint32_t>& tail : {std::vector<std::uint32_t>{8, 0}, {8, 1}, {8, 200}, {8}}) {
    Segment segment = some_segment();
    segment.options = syn_options(1400, {}, false);
    put(segment.options, 0x01010101, tail.size() == 1 ? 3 : 2);
    for (const std::uint32_t byte : tail) put(segment.options, byte, 1);
    Headers headers;
    ASSERT_EQ(parse(tcp_packet({}, segment), headers), ParseResult::ok);
    EXPECT_EQ(headers.options.mss, 1400);
    EXPECT_FALSE(headers.options.has_timestamps);
  }
  Segment segment = some_segment();
  segment.options = syn_options(1400, 200, false);
  Headers headers;
  ASSERT_EQ(parse(tcp_packet({}, segment), headers), ParseResult::ok);
  EXPECT_EQ(headers.options.window_scale, 14);
}

// A merged packet may be longer than IPv4 can express.
TEST(IngestHeaders, MergedPacketWithoutALength) {
  Bytes packet = tcp_packet({}, {.flags = kAck, .payload = pattern(0, 3000)});
  packet = packet + pattern(3000, 100'000);
  store_be16(packet.data() + 2, 0);
  Headers headers;
  EXPECT_EQ(parse(packet, headers), ParseResult::malformed);
  // So may a packet captured before its card has segmented it; the parser then trusts its checksums or ignores them.
  EXPECT_EQ(parse(packet, headers, Layer::ip, {.checksum_verified = true}), ParseResult::ok);
  EXPECT_EQ(parse(packet, headers, Layer::ip, {.segment_bytes = 1448, .checksum_verified = true}), ParseResult::ok);
  EXPECT_EQ(headers.payload_length, 103'000U);
}

TEST(IngestChecksum, EqualsThePlainOneForEveryLength) {
  for (std::size_t length = 0; length < 70; ++length) {
    const Bytes bytes = pattern(length * 1000, length);
    EXPECT_EQ(checksum_of(checksum_add(0, bytes.data(), static_cast<std::uint32_t>(length))), plain_checksum(bytes));
  }
  const Bytes ones(65536, std::byte{0xFF});
  EXPECT_EQ(checksum_of(checksum_add(0, ones.data(), 65536)), plain_checksum(ones));
}

// The first word of the reference's test vectors for messages of 8 and 16 bytes.
TEST(IngestSiphash, EqualsTheReference) {
  const HashKey key{{0x0706050403020100, 0x0F0E0D0C0B0A0908}};
  const std::uint64_t words[2] = {0x0706050403020100, 0x0F0E0D0C0B0A0908};
  EXPECT_EQ(siphash(key, words, 0), 0x726fdb47dd0e0e31U);
  EXPECT_EQ(siphash(key, words, 1), 0x93f5f5799a932462U);
  EXPECT_EQ(siphash(key, words, 2), 0x3f2acc7f57c29bdbU);
}

// With the largest number of tags and the longest headers, a reply is full.
TEST(IngestReply, AnswersThroughTheLinkItCameBy) {
  for (std::uint32_t tags = 0; tags <= kVlanTagsMax; ++tags) {
    SCOPED_TRACE(tags);
    const Bytes frame =
        ethernet(std::vector<std::uint32_t>(tags, 0x8100), 0x86DD, tcp_packet({.version = 6}, some_segment()));
    Headers headers;
    ASSERT_EQ(parse(frame, headers, Layer::ethernet), ParseResult::ok);
    LinkHeader link;
    link.answer_to(frame.data(), headers.link_length);
    TcpReply segment{.sequence = 1, .acknowledgement = 2, .flags = kAck, .window = 3, .options_length = 40};
    std::fill_n(segment.options, 40, std::byte{1});
    Reply reply;
    write_reply(reply, link, headers.flow, segment);
    EXPECT_EQ(reply.length, Reply::kBytesMax - 4 * (kVlanTagsMax - tags));
    const Bytes said(reply.bytes, reply.bytes + headers.link_length);
    const Bytes swapped = Bytes(frame.begin() + 6, frame.begin() + 12) + Bytes(frame.begin(), frame.begin() + 6);
    EXPECT_EQ(said, swapped + Bytes(frame.begin() + 12, frame.begin() + headers.link_length));
    const Answer answer = read_answer(reply, Layer::ethernet);
    EXPECT_EQ(answer.headers.flow.remote_port, 9000);
    EXPECT_EQ(answer.headers.flow.local_port, 40000);
    for (int i = 0; i < 4; ++i) {
      EXPECT_EQ(answer.headers.flow.remote[i], headers.flow.local[i]);
      EXPECT_EQ(answer.headers.flow.local[i], headers.flow.remote[i]);
    }
  }
}

}  // namespace
}  // namespace headrace::ingest::testing
