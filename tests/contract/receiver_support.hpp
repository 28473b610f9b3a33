#pragma once

#include <map>
#include <vector>

#include "frame_support.hpp"
#include "headrace/ingest/receiver.hpp"
#include "headrace/ingest/stream_bytes.hpp"
#include "tests/ingest_support.hpp"

/// What the tests of receivers share.
namespace headrace::testing {

using Bytes = std::vector<std::byte>;
using ingest::Delivery;
using ingest::Receiver;

[[nodiscard]] inline Bytes stream_of(std::uint64_t seed, std::size_t count) {
  Bytes bytes(count);
  ingest::StreamBytes(seed).fill(0, bytes);
  return bytes;
}

/// What has come of each stream.
struct Received {
  std::map<std::uint32_t, Bytes> bytes;
  std::map<std::uint32_t, Delivery> ends;
  std::map<std::uint32_t, ingest::Flow> opened;
  std::size_t frames = 0;

  void take(const Delivery& delivery) {
    switch (delivery.kind) {
      case Delivery::Kind::opened: opened[delivery.stream] = delivery.flow; return;
      case Delivery::Kind::ended: ends[delivery.stream] = delivery; return;
      case Delivery::Kind::frame: break;
    }
    const ingest::Frame& frame = delivery.frame->frame();
    Bytes& to = bytes[delivery.stream];
    EXPECT_EQ(frame.stream_offset, to.size()) << "frames come in order";
    const Bytes came = content(delivery.frame->ring().device(), frame);
    to.insert(to.end(), came.begin(), came.end());
    ++frames;
  }
};

/// Steps until `enough`, taking everything that comes.
template <class Enough>
void step_until(Receiver& receiver, Received& received, const Enough& enough) {
  const auto give_up = std::chrono::steady_clock::now() + ingest::testing::kGuard;
  while (!enough()) {
    ASSERT_LT(std::chrono::steady_clock::now(), give_up);
    receiver.step(std::chrono::milliseconds(1));
    while (const auto delivery = receiver.next({})) received.take(*delivery);
  }
}

/// Takes what a started receiver delivers, until `enough` or its end.
template <class Enough>
void take_until(Receiver& receiver, Received& received, const Enough& enough) {
  const auto give_up = std::chrono::steady_clock::now() + ingest::testing::kGuard;
  while (!enough() && !receiver.ended()) {
    ASSERT_LT(std::chrono::steady_clock::now(), give_up);
    if (const auto delivery = receiver.next(std::chrono::milliseconds(20))) received.take(*delivery);
  }
}

}  // namespace headrace::testing
