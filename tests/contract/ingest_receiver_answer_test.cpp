#include <atomic>
#include <thread>

#include "headrace/base/error.hpp"
#include "ingest/faulty_source.hpp"
#include "receiver_support.hpp"
#include "tests/ingest_memory_network.hpp"

/// Protocols on a receiver: parts of frames that are not full, and answers on connections.
namespace headrace::testing {

using ingest::ReceiverOptions;
using ingest::StreamEnd;
using ingest::TcpReception;
using ingest::testing::MemoryNetwork;
using ingest::testing::MemorySender;

namespace {

/// A peer that keeps its connection open, and speaks first.
constexpr MemorySender::Options kTalks{.finish = false};

/// The frame that `delivery` is a part of, if it is one.
struct Part {
  std::uint64_t offset = 0;
  Bytes bytes;
};
std::optional<Part> part_of(const Delivery& delivery) {
  if (delivery.kind != Delivery::Kind::part) return {};
  const ingest::Frame& part = delivery.frame->frame();
  return Part{part.stream_offset, content(delivery.frame->ring().device(), part)};
}

}  // namespace

class IngestReceiverAnswers : public DeviceTest {
 protected:
  /// Steps until `enough`, and keeps the parts that arrive.
  template <class Enough>
  void converse(Receiver& receiver, const Enough& enough) {
    const auto give_up = std::chrono::steady_clock::now() + ingest::testing::kGuard;
    while (!enough()) {
      ASSERT_LT(std::chrono::steady_clock::now(), give_up);
      receiver.step(std::chrono::milliseconds(1));
      while (const auto delivery = receiver.next({})) {
        if (auto part = part_of(*delivery)) {
          parts_.push_back(*std::move(part));
        } else {
          received_.take(*delivery);
        }
      }
    }
  }

  Ring ring_{device(), MemoryKind::mapped, 2048, 64};
  MemoryNetwork network_{ring_};
  Received received_;
  std::vector<Part> parts_;
};
HEADRACE_ON_EVERY_DEVICE(IngestReceiverAnswers);

TEST_P(IngestReceiverAnswers, ARequestIsSeenBeforeItsFrameIsFullAndAnswered) {
  const Bytes data = stream_of(1, 150);
  const auto second = data.begin() + 100;
  MemorySender& peer = network_.add(Bytes(data.begin(), second), kTalks);
  Receiver receiver(network_, ring_, device(), TcpReception{.connections = 1}, kSmall);
  converse(receiver, [&] { return received_.opened.size() == 1; });
  receiver.peek(0, 0);
  converse(receiver, [&] { return parts_.size() == 1; });
  EXPECT_EQ(parts_[0].offset, 0U);
  EXPECT_EQ(parts_[0].bytes, Bytes(data.begin(), second));

  const Bytes answer = stream_of(2, 5000);  // more than a connection keeps at once
  ASSERT_TRUE(receiver.send(0, std::span(answer).first(3000)).ok());
  ASSERT_TRUE(receiver.send(0, std::span(answer).subspan(3000)).ok());
  converse(receiver, [&] { return peer.heard().size() == answer.size(); });
  EXPECT_EQ(peer.heard(), answer);
  EXPECT_EQ(parts_.size(), 1U) << "once for each request";

  receiver.peek(0, 100);
  peer.say(Bytes(second, data.end()));
  converse(receiver, [&] { return parts_.size() == 2; });
  EXPECT_EQ(parts_[1].offset, 100U);
  EXPECT_EQ(parts_[1].bytes, Bytes(second, data.end()));
  receiver.peek(0, 150);  // nothing of it arrives
  peer.finish();
  converse(receiver, [&] { return received_.ends.size() == 1; });
  EXPECT_EQ(parts_.size(), 2U);
  EXPECT_EQ(received_.bytes[0], data) << "the frame still arrives in full";
  EXPECT_EQ(received_.frames, 1U);
}

TEST_P(IngestReceiverAnswers, APartWaitsForAsMuchAsIsAskedFor) {
  const Bytes data = stream_of(1, 300);
  MemorySender& peer = network_.add(Bytes(data.begin(), data.begin() + 100), kTalks);
  Receiver receiver(network_, ring_, device(), TcpReception{.connections = 1}, kSmall);
  EXPECT_TRUE(receiver.has_parts());
  converse(receiver, [&] { return received_.opened.size() == 1; });
  receiver.peek(0, 50, 250);
  peer.say(Bytes(data.begin() + 100, data.begin() + 200));
  converse(receiver, [&] { return receiver.counters().tcp.bytes == 200; });
  int steps = 0;
  converse(receiver, [&] { return ++steps > 50; });
  EXPECT_TRUE(parts_.empty());
  peer.say(Bytes(data.begin() + 200, data.end()));
  converse(receiver, [&] { return parts_.size() == 1; });
  EXPECT_EQ(parts_[0].offset, 50U);
  EXPECT_EQ(parts_[0].bytes, Bytes(data.begin() + 50, data.end()));
}

// A consumer that always asks for what follows sees every byte as a part or in a frame, and all frames are complete.
TEST_P(IngestReceiverAnswers, PartsAndFramesTogetherHaveEveryByte) {
  const Bytes data = stream_of(3, 5 * kSmallFrameBytes + 777);
  network_.add(data, {.in_flight_max = 9000});
  Receiver receiver(network_, ring_, device(), TcpReception{.connections = 1}, kSmall);
  std::uint64_t seen = 0;
  const auto look = [&] {
    for (const Part& part : std::exchange(parts_, {})) {
      ASSERT_GE(part.offset, seen);
      ASSERT_EQ(part.offset / kSmallFrameBytes, (part.offset + part.bytes.size() - 1) / kSmallFrameBytes);
      const auto from = data.begin() + static_cast<std::ptrdiff_t>(part.offset);
      ASSERT_TRUE(std::equal(part.bytes.begin(), part.bytes.end(), from)) << part.offset;
      ASSERT_LE(part.offset, std::max<std::uint64_t>(seen, received_.bytes[0].size()));
      seen = part.offset + part.bytes.size();
    }
    seen = std::max<std::uint64_t>(seen, received_.bytes[0].size());
    if (!received_.opened.empty()) receiver.peek(0, seen);
  };
  converse(receiver, [&] {
    look();
    return received_.ends.size() == 1 || HasFatalFailure();
  });
  EXPECT_TRUE(received_.bytes[0] == data);
}

TEST_P(IngestReceiverAnswers, APartKeepsItsBuffer) {
  const Bytes data = stream_of(4, 8 * kSmallFrameBytes);
  MemorySender& peer = network_.add(Bytes(data.begin(), data.begin() + 500), kTalks);
  Receiver receiver(network_, ring_, device(), TcpReception{.connections = 1}, kSmall);
  converse(receiver, [&] { return received_.opened.size() == 1; });
  receiver.peek(0, 0);
  std::optional<Delivery> held;
  const auto give_up = std::chrono::steady_clock::now() + ingest::testing::kGuard;
  while (!held) {
    ASSERT_LT(std::chrono::steady_clock::now(), give_up);
    receiver.step(std::chrono::milliseconds(1));
    held = receiver.next({});
  }
  ASSERT_EQ(held->kind, Delivery::Kind::part);
  peer.say(Bytes(data.begin() + 500, data.end()));
  peer.finish();
  // All frames are returned at once, but the first cannot be refilled.
  converse(receiver, [&] { return received_.frames == kSmallFrames && peer.closed() > 0; });
  EXPECT_EQ(peer.acknowledged(), kSmallFrames * kSmallFrameBytes);
  EXPECT_EQ(content(device(), held->frame->frame()), Bytes(data.begin(), data.begin() + 500));
  held.reset();
  converse(receiver, [&] { return received_.ends.size() == 1; });
  EXPECT_TRUE(received_.bytes[0] == data);
}

// The receiver's own thread steps, while others ask and answer.
TEST_P(IngestReceiverAnswers, SeveralThreadsAskAndAnswer) {
  constexpr std::uint32_t kPeers = 8;
  std::vector<const MemorySender*> peers;
  for (std::uint32_t i = 0; i < kPeers; ++i) {
    MemorySender::Options options = kTalks;
    options.peer.port = static_cast<std::uint16_t>(40000 + i);
    peers.push_back(&network_.add(stream_of(i, 200), options));
  }
  Receiver receiver(network_, ring_, device(), TcpReception{.connections = kPeers}, kSmall);
  std::atomic<std::uint32_t> ended{0};
  receiver.start();
  const auto give_up = std::chrono::steady_clock::now() + ingest::testing::kGuard;
  const auto serve = [&] {
    while (ended < kPeers && std::chrono::steady_clock::now() < give_up) {
      const auto delivery = receiver.next(std::chrono::milliseconds(5));
      if (!delivery) continue;
      if (delivery->kind == Delivery::Kind::opened) receiver.peek(delivery->stream, 199);
      if (delivery->kind == Delivery::Kind::ended) ++ended;
      if (const auto part = part_of(*delivery)) {
        EXPECT_EQ(part->offset, 199U);
        EXPECT_TRUE(receiver.send(delivery->stream, stream_of(delivery->flow.remote_port, 2000)).ok());
        receiver.close(delivery->stream);
        receiver.reset(delivery->stream);
      }
    }
  };
  std::thread first(serve);
  std::thread second(serve);
  first.join();
  second.join();
  receiver.stop();
  EXPECT_EQ(ended, kPeers);
  for (const MemorySender* peer : peers) EXPECT_TRUE(peer->was_reset());
}

TEST_P(IngestReceiverAnswers, MoreThanMayWaitIsRefusedAsAWhole) {
  network_.add(stream_of(5, 10), kTalks);
  Receiver receiver(network_, ring_, device(), TcpReception{.connections = 1}, kSmall);
  converse(receiver, [&] { return received_.opened.size() == 1; });
  const Bytes most(Receiver::kAnswerBytesMax);
  ASSERT_TRUE(receiver.send(77, most).ok());  // for a stream that does not exist: dropped at the next step
  const Status refused = receiver.send(0, std::span(most).first(1));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Errc::full);
  receiver.step({});
  EXPECT_TRUE(receiver.send(0, most).ok());
  EXPECT_FALSE(receiver.send(0, std::span(most).first(1)).ok());
  receiver.reset(0);
  converse(receiver, [&] { return received_.ends.size() == 1; });
  EXPECT_EQ(received_.ends[0].end, StreamEnd::cut);
  EXPECT_TRUE(receiver.send(0, most).ok()) << "data that waited on a closed connection is not sent";
}

TEST_P(IngestReceiverAnswers, FinFollowsWhatWaits) {
  MemorySender& peer = network_.add(stream_of(6, 10), kTalks);
  Receiver receiver(network_, ring_, device(), TcpReception{.connections = 1}, kSmall);
  converse(receiver, [&] { return received_.opened.size() == 1; });
  const Bytes answer = stream_of(7, 4000);
  ASSERT_TRUE(receiver.send(0, answer).ok());
  receiver.close(0);
  ASSERT_TRUE(receiver.send(0, answer).ok());  // too late: never sent
  converse(receiver, [&] { return peer.peer_finished(); });
  EXPECT_EQ(peer.heard(), answer);
  peer.say(stream_of(6, 5));
  peer.finish();
  converse(receiver, [&] { return received_.ends.size() == 1 && peer.over(); });
  EXPECT_EQ(received_.ends[0].stream_bytes, 15U) << "the peer's last bytes have arrived";
  EXPECT_EQ(received_.ends[0].end, StreamEnd::finished);
}

TEST_P(IngestReceiverAnswers, AStreamThatHasEndedMayBeAnswered) {
  MemorySender& peer = network_.add(stream_of(8, 1000), {});
  Receiver receiver(network_, ring_, device(), TcpReception{.config = {.close_when_finished = false}, .connections = 1},
                    kSmall);
  converse(receiver, [&] { return received_.ends.size() == 1; });
  EXPECT_FALSE(peer.peer_finished());
  const Bytes answer = stream_of(9, 2500);
  ASSERT_TRUE(receiver.send(0, answer).ok());
  receiver.close(0);
  converse(receiver, [&] { return peer.over(); });
  EXPECT_EQ(peer.heard(), answer);
  EXPECT_FALSE(peer.was_reset());
}

TEST_P(IngestReceiverAnswers, ConversationsOverABadNetwork) {
  Ring between(device(), MemoryKind::pinned, 2048, 64);
  Ring ring(device(), MemoryKind::mapped, 2048, 64);
  auto network = std::make_unique<MemoryNetwork>(between);
  MemorySender& peer = network->add({}, kTalks);
  const auto faulty = ingest::make_faulty_source(
      ring, std::move(network), between,
      {.loss = 0.05, .duplication = 0.05, .corruption = 0.02, .reordering = 0.05, .loss_sent = 0.05, .seed = 11});
  Receiver receiver(*faulty, ring, device(),
                    TcpReception{.config = {.open_at_first_byte = false,
                                            .retransmit_first = 5 * ingest::TcpConfig::kMs,
                                            .retransmits_max = 16},
                                 .connections = 1},
                    kSmall);
  converse(receiver, [&] { return received_.opened.size() == 1; });
  Bytes said;
  Bytes answered;
  for (std::uint64_t round = 0; round < 20; ++round) {
    const Bytes request = stream_of(100 + round, 3000);
    peer.say(request);
    while (said.size() % 3000 != 0 || said.size() == round * 3000) {
      receiver.peek(0, said.size());
      converse(receiver, [&] { return !parts_.empty() || received_.bytes[0].size() > said.size(); });
      ASSERT_FALSE(HasFatalFailure());
      const Bytes& whole = received_.bytes[0];
      if (whole.size() > said.size()) {
        said.insert(said.end(), whole.begin() + static_cast<std::ptrdiff_t>(said.size()), whole.end());
      }
      for (const Part& part : std::exchange(parts_, {})) {
        const auto known = static_cast<std::ptrdiff_t>(said.size() - part.offset);
        ASSERT_GE(known, 0);
        if (known < std::ssize(part.bytes)) said.insert(said.end(), part.bytes.begin() + known, part.bytes.end());
      }
    }
    ASSERT_TRUE(std::equal(request.begin(), request.end(), said.end() - 3000)) << round;
    const Bytes answer = stream_of(200 + round, 700);
    answered.insert(answered.end(), answer.begin(), answer.end());
    ASSERT_TRUE(receiver.send(0, answer).ok());
    converse(receiver, [&] { return peer.heard().size() == answered.size(); });
    ASSERT_FALSE(HasFatalFailure());
  }
  EXPECT_EQ(peer.heard(), answered);
  EXPECT_GT(faulty->faults().lost, 0U);
}

TEST_P(IngestReceiverAnswers, WhatCannotBeAnsweredIsRefused) {
  const auto refuses = [&](Receiver& receiver, std::string_view why) {
    for (const auto& ask : {std::function([&] { (void)receiver.send(0, {}); }),
                            std::function([&] { receiver.close(0); }), std::function([&] { receiver.peek(0, 0); })}) {
      EXPECT_THAT(ask, ::testing::Throws<UsageError>(
                           ::testing::Property(&std::exception::what, ::testing::HasSubstr(std::string(why)))));
    }
  };
  {
    ReceiverOptions options = kSmall;
    options.control = Control::resident;
    Receiver receiver(network_, ring_, device(), TcpReception{.connections = 1}, options);
    refuses(receiver, "cannot send answers or show parts of frames; use host control");
  }
  {
    Receiver receiver(network_, ring_, device(),
                      ingest::DatagramReception{.config = {.payload_bytes = 100, .frame_packets = 10}}, kSmall);
    refuses(receiver, "a stream of datagrams cannot be answered");
  }
  ReceiverOptions options = kSmall;
  options.frames.conversion = ingest::Conversion::swap2;
  Receiver receiver(network_, ring_, device(), TcpReception{.connections = 1}, options);
  EXPECT_THROW(receiver.peek(0, 0), UsageError);
  EXPECT_TRUE(receiver.send(0, {}).ok());
}

}  // namespace headrace::testing
