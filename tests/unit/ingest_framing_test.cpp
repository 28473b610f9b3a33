#include "headrace/ingest/detail/framing.hpp"

#include <random>

#include "headrace/base/error.hpp"
#include "tests/ingest_peer.hpp"

namespace headrace::ingest::testing {
namespace {

TEST(IngestFraming, PiecesAreCutAtFrames) {
  const FixedFrames frames{.frame_bytes = 100};
  Piece piece{.ring_offset = 7, .stream_offset = 250, .length = 260, .stream = 3};
  std::vector<Piece> parts;
  while (piece.length > 0) parts.push_back(frames.cut(piece));
  ASSERT_EQ(parts.size(), 4U);
  const std::uint64_t lengths[] = {50, 100, 100, 10};
  std::uint64_t at = 0;
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(parts[i].length, lengths[i]);
    EXPECT_EQ(parts[i].ring_offset, 7 + at);
    EXPECT_EQ(parts[i].stream_offset, 250 + at);
    EXPECT_EQ(parts[i].stream, 3U);
    EXPECT_EQ(frames.frame_of(parts[i].stream_offset), frames.frame_of(parts[i].stream_offset + parts[i].length - 1));
    at += lengths[i];
  }
  EXPECT_EQ(frames.limit(3), 300U);
}

TEST(IngestFraming, MessagesInPartsOfAnySize) {
  for (std::uint32_t seed = 0; seed < 40; ++seed) {
    std::mt19937 random(seed);
    const std::uint32_t width = 1 + seed % 8;
    const auto offset = static_cast<std::uint32_t>(random() % 5);
    const LengthPrefix prefix{.offset = offset,
                              .width = width,
                              .header_bytes = offset + width + static_cast<std::uint32_t>(random() % 4),
                              .big_endian = seed % 2 == 0,
                              .counts_header = seed % 3 == 0,
                              .body_max = 200};
    check(prefix);
    Bytes stream;
    std::vector<Message> expected;
    for (int i = 0; i < 50; ++i) {
      const std::uint64_t body = random() % 201;
      expected.push_back({stream.size(), stream.size() + prefix.header_bytes, body});
      Bytes header(prefix.header_bytes, std::byte{0xEE});
      std::uint64_t said = body + (prefix.counts_header ? prefix.header_bytes : 0);
      for (std::uint32_t b = 0; b < width; ++b, said >>= 8) {
        header[offset + (prefix.big_endian ? width - 1 - b : b)] = static_cast<std::byte>(said);
      }
      stream = stream + header + pattern(i, body);
    }
    MessageFraming framing(prefix);
    std::vector<Message> found;
    for (std::uint64_t at = 0; at < stream.size();) {
      const std::uint64_t length = std::min<std::uint64_t>(stream.size() - at, 1 + random() % 60);
      const Bytes part(stream.begin() + static_cast<std::ptrdiff_t>(at),
                       stream.begin() + static_cast<std::ptrdiff_t>(at + length));
      Message message;
      while (framing.next(part.data(), at, length, message)) found.push_back(message);
      at += length;
    }
    EXPECT_FALSE(framing.failed());
    ASSERT_EQ(found.size(), expected.size()) << seed;
    for (std::size_t i = 0; i < found.size(); ++i) {
      EXPECT_EQ(found[i].begin, expected[i].begin);
      EXPECT_EQ(found[i].body, expected[i].body);
      EXPECT_EQ(found[i].body_bytes, expected[i].body_bytes);
    }
    EXPECT_EQ(framing.wanted(), stream.size());
  }
}

TEST(IngestFraming, ALengthBeyondTheLimitEndsIt) {
  for (const bool counts : {false, true}) {
    MessageFraming framing({.width = 2, .header_bytes = 2, .counts_header = counts, .body_max = 10});
    Bytes stream;
    put(stream, counts ? 12 : 10, 2);
    stream = stream + pattern(0, 10);
    put(stream, counts ? 1 : 11, 2);
    stream = stream + pattern(0, 11);
    Message message;
    EXPECT_TRUE(framing.next(stream.data(), 0, stream.size(), message));
    EXPECT_EQ(message.body_bytes, 10U);
    EXPECT_FALSE(framing.next(stream.data(), 0, stream.size(), message));
    EXPECT_TRUE(framing.failed());
    EXPECT_EQ(framing.begin(), 12U);
    EXPECT_EQ(framing.failed_length(), counts ? 1U : 11U);
    EXPECT_FALSE(framing.next(stream.data(), 0, stream.size(), message));
  }
}

TEST(IngestFraming, PrefixesThatDoNotFitAreRefused) {
  EXPECT_NO_THROW(check(LengthPrefix{}));
  EXPECT_THROW(check(LengthPrefix{.width = 0}), UsageError);
  EXPECT_THROW(check(LengthPrefix{.width = 9, .header_bytes = 9}), UsageError);
  EXPECT_THROW(check(LengthPrefix{.offset = 1}), UsageError);
  EXPECT_THROW(check(LengthPrefix{.header_bytes = 65}), UsageError);
  EXPECT_THROW(check(LengthPrefix{.body_max = ~std::uint64_t{0}}), UsageError);
}

}  // namespace
}  // namespace headrace::ingest::testing
