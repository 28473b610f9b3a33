// The rules for following TCP connections between other hosts: docs/ingest-follow.md.

#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/base/error.hpp"
#include "ingest/follow/follower.hpp"

namespace headrace::ingest {
namespace {

constexpr std::uint8_t kSyn = tcp_flag::kSyn;
constexpr std::uint8_t kAck = tcp_flag::kAck;
constexpr std::uint8_t kFin = tcp_flag::kFin;
constexpr std::uint8_t kRst = tcp_flag::kRst;
constexpr std::uint64_t kMs = 1'000'000;

/// Contents of a stream; missing bytes are '.'.
struct Got {
  std::string text;
  std::string end;
  Flow flow;
};

/// Two ends whose segments go to a follower, and the streams that it gives out.
class Follow : public ::testing::Test {
 protected:
  static constexpr std::uint32_t kClient = 1000;  ///< Initial sequence numbers.
  static constexpr std::uint32_t kServer = 5000;

  void make(const FollowOptions& options) { follower_.emplace(options); }

  /// A segment of the client (or the server). `sequence` and `acknowledgement` count from the SYN.
  void client(std::uint32_t sequence, std::string_view payload, std::uint8_t flags = kAck,
              std::uint32_t acknowledgement = 1, std::uint32_t cut = 0) {
    send(flow_, kClient + sequence, kServer + acknowledgement, payload, flags, cut);
  }
  void server(std::uint32_t sequence, std::string_view payload, std::uint8_t flags = kAck,
              std::uint32_t acknowledgement = 1, std::uint32_t cut = 0) {
    Flow flow = flow_;
    std::swap(flow.remote, flow.local);
    std::swap(flow.remote_port, flow.local_port);
    send(flow, kServer + sequence, kClient + acknowledgement, payload, flags, cut);
  }
  void handshake() {
    client(0, "", kSyn, 0);
    server(0, "", kSyn | kAck);
    client(1, "");
  }

  void send(const Flow& flow, std::uint32_t sequence, std::uint32_t acknowledgement, std::string_view payload,
            std::uint8_t flags, std::uint32_t cut) {
    now_ += kMs;
    if (!follower_) make({});
    const std::span bytes(reinterpret_cast<const std::byte*>(payload.data()), payload.size());
    follower_->take({.flow = flow,
                     .time_ns = now_,
                     .sequence = sequence + ((flags & kSyn) != 0 ? 1U : 0U),
                     .acknowledgement = acknowledgement,
                     .flags = flags,
                     .length = static_cast<std::uint32_t>(payload.size()) + cut,
                     .payload = bytes});
    collect();
  }

  void collect() {
    for (Follower::Item& item : follower_->items()) {
      Got& got = streams_[item.stream];
      got.flow = item.flow;
      switch (item.kind) {
        case Followed::Kind::bytes:
          EXPECT_EQ(item.offset, got.text.size());
          EXPECT_EQ(item.length, item.bytes.size());
          got.text.append(reinterpret_cast<const char*>(item.bytes.data()), item.bytes.size());
          break;
        case Followed::Kind::missing:
          EXPECT_EQ(item.offset, got.text.size());
          got.text.append(item.length, '.');
          break;
        case Followed::Kind::finished: got.end = "finished"; break;
        case Followed::Kind::reset: got.end = "reset"; break;
        case Followed::Kind::cut: got.end = "cut"; break;
      }
    }
    follower_->items().clear();
  }

  void wait(std::uint64_t ms) { now_ += ms * kMs; }
  void end() {
    follower_->end();
    collect();
  }
  [[nodiscard]] std::string text(std::uint32_t stream) { return streams_[stream].text + '|' + streams_[stream].end; }
  [[nodiscard]] const FollowCounters& counters() { return follower_->counters(); }

  Flow flow_{.remote = {1}, .local = {2}, .remote_port = 40000, .local_port = 80, .version = 4};
  std::uint64_t now_ = 1'000'000'000'000;
  std::optional<Follower> follower_;
  std::map<std::uint32_t, Got> streams_;
};

TEST_F(Follow, EachDirectionIsAStream) {
  handshake();
  client(1, "request");
  server(1, "answer", kAck, 8);
  client(8, "", kAck | kFin, 7);
  server(7, " more", kAck | kFin, 9);
  EXPECT_EQ(text(0), "request|finished");
  EXPECT_EQ(text(1), "answer more|finished");
  EXPECT_EQ(streams_[0].flow.remote_port, 40000);
  EXPECT_EQ(streams_[1].flow.remote_port, 80);
  EXPECT_EQ(counters().connections, 1U);
  EXPECT_EQ(counters().under_way, 0U);
  EXPECT_EQ(counters().bytes, 18U);
}

TEST_F(Follow, AConnectionWithoutPayloadHasNoStreams) {
  handshake();
  client(1, "", kAck | kFin);
  server(1, "", kAck | kFin, 2);
  end();
  EXPECT_TRUE(streams_.empty());
  EXPECT_EQ(counters().connections, 1U);
}

TEST_F(Follow, SegmentsOutOfOrderAndTwiceAreOneStream) {
  handshake();
  client(7, "ghi");
  client(4, "def");
  client(4, "def");
  client(1, "abc");
  client(2, "bcdefghijk");
  end();
  EXPECT_EQ(text(0), "abcdefghijk|cut");
  EXPECT_EQ(counters().out_of_order, 2U);
  EXPECT_EQ(counters().duplicates, 1U);
  EXPECT_EQ(counters().duplicate_bytes, 3U + 8U);
}

TEST_F(Follow, TheFirstBytesOfAPlaceCount) {
  handshake();
  client(4, "DE");
  client(1, "abcdef");  // in order, but 4 and 5 are held
  client(5, "xyz");
  client(10, "JK");
  client(9, "ijkl");
  end();
  EXPECT_EQ(text(0), "abcDEfz.iJKl|cut");
}

TEST_F(Follow, SequenceNumbersWrap) {
  const std::uint32_t start = 0xFFFFFFFCU - kClient;
  client(start, "", kSyn, 0);
  server(0, "", kSyn | kAck, start + 1);
  client(start + 4, "defg");
  client(start + 1, "abc");
  client(start + 8, "h", kAck | kFin);
  EXPECT_EQ(text(0), "abcdefgh|finished");
}

TEST_F(Follow, DataMayComeWithSyn) {
  client(0, "early", kSyn, 0);
  server(0, "", kSyn | kAck, 1);  // the server does not accept it
  client(1, "early bird", kAck);
  client(11, "", kAck | kFin);
  EXPECT_EQ(text(0), "early bird|finished");
}

TEST_F(Follow, KeepAlivesBringNothing) {
  handshake();
  client(1, "abc");
  server(1, "", kAck, 4);
  client(3, "");
  client(3, "x");  // the previous byte, with any value
  client(4, "def");
  end();
  EXPECT_EQ(text(0), "abcdef|cut");
  EXPECT_EQ(counters().gaps, 0U);
}

TEST_F(Follow, AConnectionMayBeUnderWay) {
  client(500, "middle");
  server(900, "reply", kAck, 506);
  client(506, "!", kAck | kFin, 905);
  end();
  EXPECT_EQ(text(0), "middle!|finished");
  EXPECT_EQ(text(1), "reply|cut");
  EXPECT_EQ(counters().under_way, 1U);
}

TEST_F(Follow, AKeepAliveThatComesFirstHidesNoByte) {
  client(499, "", kAck, 900);
  server(900, "", kAck, 500);
  client(500, "data", kAck, 900);
  server(900, "", kAck, 504);
  end();
  EXPECT_EQ(text(0), "data|cut");
  EXPECT_EQ(counters().missing_bytes, 0U);
}

TEST_F(Follow, AnEmptySegmentThatComesFirstMayBeAheadOfData) {
  client(504, "", kAck, 900);
  client(500, "data", kAck, 900);
  end();
  EXPECT_EQ(text(0), "data|cut");
}

TEST_F(Follow, AcknowledgedGapsAreGivenUpAfterAWhile) {
  handshake();
  client(1, "abc");
  client(7, "ghi");
  server(1, "", kAck, 10);
  wait(500);
  client(10, "j");
  EXPECT_EQ(text(0), "|");  // byte may still arrive
  wait(600);
  client(11, "k");
  follower_->flush();
  collect();
  EXPECT_EQ(text(0), "abc...ghijk|");
  EXPECT_EQ(counters().gaps, 1U);
  EXPECT_EQ(counters().missing_bytes, 3U);
  client(4, "def");
  EXPECT_EQ(counters().late_bytes, 3U);
}

TEST_F(Follow, PacketsThatACaptureHoldsLateFillTheirGap) {
  handshake();
  client(4, "def");
  server(1, "", kAck, 7);
  wait(100);
  client(1, "abc");
  end();
  EXPECT_EQ(text(0), "abcdef|cut");
}

TEST_F(Follow, GapsThatNobodyAcknowledgedWaitForTheEnd) {
  handshake();
  client(1, "abc");
  client(7, "ghi");
  wait(10'000);
  server(1, "", kAck, 4);
  client(10, "j");
  EXPECT_EQ(text(0), "|");
  end();
  EXPECT_EQ(text(0), "abc...ghij|cut");
}

TEST_F(Follow, WhatWasAcknowledgedAtTheEndIsMissing) {
  handshake();
  client(1, "abc");
  server(1, "", kAck, 10);
  end();
  EXPECT_EQ(text(0), "abc......|cut");
  EXPECT_EQ(counters().missing_bytes, 6U);
}

TEST_F(Follow, AnAcknowledgedFinThatTheCaptureLacksIsNoByte) {
  handshake();
  client(1, "abc");
  server(1, "", kAck, 5);
  end();
  EXPECT_EQ(text(0), "abc|cut");
}

TEST_F(Follow, BytesBeforeFinThatNeverCameAreMissing) {
  handshake();
  client(1, "abc");
  client(7, "", kAck | kFin);
  server(1, "", kAck | kFin, 8);
  end();
  EXPECT_EQ(text(0), "abc...|finished");
}

TEST_F(Follow, NothingLiesBehindFin) {
  handshake();
  client(1, "abc", kAck | kFin);
  client(4, "injected");
  end();
  EXPECT_EQ(text(0), "abc|finished");
}

TEST_F(Follow, AHalfClosedConnectionGoesOn) {
  handshake();
  client(1, "ask", kAck | kFin);
  EXPECT_EQ(text(0), "ask|finished");
  wait(60'000);
  server(1, "long answer", kAck, 5);
  server(12, "", kAck | kFin, 5);
  EXPECT_EQ(text(1), "long answer|finished");
}

TEST_F(Follow, AResetEndsBothAfterWhatWasUnderWay) {
  handshake();
  client(1, "abc");
  server(1, "xyz", kAck, 4);
  client(4, "", kRst);
  server(4, "was under way", kAck, 4);
  EXPECT_EQ(text(1), "|");
  wait(1100);
  flow_.remote_port = 1;
  client(0, "", kSyn, 0);  // any packet advances the time
  EXPECT_EQ(text(0), "abc|reset");
  EXPECT_EQ(text(1), "xyzwas under way|reset");
}

TEST_F(Follow, AResetThatNobodyObeysEndsNothing) {
  handshake();
  client(1, "abc");
  server(1, "", kRst);
  for (std::uint32_t i = 0; i < 10; ++i) {
    wait(400);
    client(4 + i, "d");
  }
  client(14, "", kAck | kFin);
  EXPECT_EQ(text(0), "abcdddddddddd|finished");
}

TEST_F(Follow, TheReasonInAResetIsNoData) {
  handshake();
  client(1, "abc");
  client(4, "No route", kRst | kAck);
  end();
  EXPECT_EQ(text(0), "abc|reset");
}

TEST_F(Follow, PortsAreUsedAgain) {
  handshake();
  client(1, "one");
  client(70'000, "", kSyn, 0);
  EXPECT_EQ(text(0), "one|cut");
  server(90'000, "", kSyn | kAck, 70'001);
  client(70'001, "two", kAck, 90'001);
  client(70'004, "", kAck | kFin, 90'001);
  EXPECT_EQ(text(1), "two|finished");
  EXPECT_EQ(counters().connections, 2U);
}

TEST_F(Follow, AForgedEndBeforeTheAnswerEndsNothing) {
  client(0, "", kSyn, 0);
  server(700, "", kRst | kAck);
  server(700, "", kFin | kAck);
  server(0, "", kSyn | kAck);
  client(1, "request");
  server(1, "answer", kFin | kAck, 8);
  EXPECT_EQ(text(0), "answer|finished");  // given out first, because it is complete
  end();
  EXPECT_EQ(text(1), "request|reset");
}

TEST_F(Follow, ASynThatComesAgainBeginsNothing) {
  client(0, "", kSyn, 0);
  client(0, "", kSyn, 0);
  server(0, "", kSyn | kAck);
  client(1, "abc");
  client(0, "", kSyn, 0);
  server(0, "", kSyn | kAck);
  client(4, "def", kAck | kFin);
  EXPECT_EQ(text(0), "abcdef|finished");
  EXPECT_EQ(counters().connections, 1U);
}

TEST_F(Follow, WhatComesBehindTheEndOfAConnectionIsCounted) {
  handshake();
  client(1, "abc", kAck | kFin);
  server(1, "", kAck | kFin, 5);
  client(1, "abc", kAck | kFin);  // its acknowledgement was lost
  end();
  EXPECT_EQ(text(0), "abc|finished");
  EXPECT_EQ(counters().late_bytes, 0U);
}

TEST_F(Follow, CutPayloadIsMissing) {
  handshake();
  client(1, "abc", kAck, 1, 5);
  client(9, "def", kAck, 1, 5);
  server(1, "", kAck, 17);
  client(17, "", kAck | kFin);
  end();
  EXPECT_EQ(text(0), "abc.....def.....|finished");
  EXPECT_EQ(counters().cut_bytes, 10U);
  EXPECT_EQ(counters().missing_bytes, 10U);
}

TEST_F(Follow, StraySegmentsMakeNoStream) {
  handshake();
  client(1, "abc");
  client((1U << 30) + 100, "stray", kAck | kFin);
  client(100 << 20, "a little nearer");
  client(4, "def");
  end();
  EXPECT_EQ(text(0), "abcdef|cut");
  EXPECT_EQ(counters().unproven_bytes, 20U);
  EXPECT_EQ(counters().bytes, 6U);
}

TEST_F(Follow, LargeGapsThatWereAcknowledgedAreOnes) {
  handshake();
  client(1, "abc");
  server(1, "", kAck, 20 << 20);
  client(20 << 20, "def");
  server(1, "", kAck, (20 << 20) + 3);
  client((20 << 20) + 3, "", kAck | kFin);
  end();
  EXPECT_EQ(streams_[0].text.size(), (20U << 20) + 2);
  EXPECT_EQ(streams_[0].end, "finished");
  EXPECT_EQ(counters().missing_bytes, (20U << 20) - 4);
}

TEST_F(Follow, AFinOfAnotherTimeIsReplaced) {
  handshake();
  client(1, "abc");
  client(500'000'000, "", kAck | kFin);
  client(4, "def", kAck | kFin);
  EXPECT_EQ(text(0), "abcdef|finished");
}

TEST_F(Follow, OnePortAlone) {
  make({.port = 80});
  handshake();
  client(1, "abc");
  flow_.local_port = 81;
  client(0, "", kSyn);
  client(1, "other");
  end();
  EXPECT_EQ(streams_.size(), 1U);
  EXPECT_EQ(counters().other, 2U);
}

TEST_F(Follow, MemoryIsBoundedByGivingUpTheOldestGap) {
  make({.hold_bytes = 1 << 20});
  const std::string chunk(10'000, 'x');
  handshake();
  client(1, "a");
  std::uint32_t at = 3;  // byte 2 never arrives
  for (int i = 0; i < 300; ++i) {
    client(at, chunk);
    at += 10'000;
  }
  EXPECT_EQ(counters().given_up, 1U);
  client(at, "", kAck | kFin);
  EXPECT_EQ(streams_[0].text.size(), at - 1);
  EXPECT_EQ(streams_[0].text.substr(0, 3), "a.x");
  EXPECT_EQ(streams_[0].end, "finished");
}

TEST_F(Follow, TheConnectionThatIsSilentForLongestGivesWay) {
  make({.connections_max = 2});
  for (std::uint16_t port = 1; port <= 3; ++port) {
    flow_.remote_port = port;
    handshake();
    client(1, std::to_string(port));
    if (port == 2) {
      flow_.remote_port = 1;
      client(2, "+");
    }
  }
  EXPECT_EQ(counters().forgotten, 1U);
  EXPECT_EQ(text(0), "2|cut");
  end();
  EXPECT_EQ(text(1), "1+|cut");
  EXPECT_EQ(text(2), "3|cut");
}

TEST_F(Follow, AddressesOfBothVersionsAreToldApart) {
  flow_.version = 6;
  handshake();
  client(1, "six");
  flow_.version = 4;
  handshake();
  client(1, "four");
  end();
  EXPECT_EQ(text(0), "six|cut");
  EXPECT_EQ(text(1), "four|cut");
}

TEST(FollowOptions, OutOfRangeAreRefused) {
  EXPECT_THROW(Follower({.hold_bytes = 1000}), UsageError);
  EXPECT_THROW(Follower({.connections_max = 0}), UsageError);
}

}  // namespace
}  // namespace headrace::ingest
