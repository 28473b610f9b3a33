#pragma once

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "frame_support.hpp"
#include "headrace/ingest/receiver.hpp"
#include "ingest/stream_bytes.hpp"
#include "tests/ingest_support.hpp"

/// Shared by the tests of receivers.
namespace headrace::testing {

using Bytes = std::vector<std::byte>;
using ingest::Delivery;
using ingest::Receiver;

/// Few small frames, so that streams of some hundred KB fill them.
inline constexpr std::size_t kSmallFrameBytes = 40'000;
inline constexpr std::uint32_t kSmallFrames = 3;
inline constexpr ingest::ReceiverOptions kSmall{
    .frames = {.frame_bytes = kSmallFrameBytes, .frame_count = kSmallFrames}, .burst_packets = 32};

[[nodiscard]] inline Bytes stream_of(std::uint64_t seed, std::size_t count) {
  Bytes bytes(count);
  ingest::StreamBytes(seed).fill(0, bytes);
  return bytes;
}

using ingest::Control;

/// A test of what receivers promise with either control.
class ControlTest : public ::testing::TestWithParam<std::tuple<std::string, Control>> {
 public:
  [[nodiscard]] static Device device() { return Device::parse(std::get<0>(GetParam())); }
  [[nodiscard]] static bool on_cpu() { return device().kind() == DeviceKind::cpu; }
  [[nodiscard]] static bool resident() { return std::get<1>(GetParam()) == Control::resident; }
  [[nodiscard]] static ingest::ReceiverOptions with_control(ingest::ReceiverOptions options) {
    options.control = std::get<1>(GetParam());
    return options;
  }
};

/// "cuda_0_resident".
[[nodiscard]] inline std::string control_test_name(const ::testing::TestParamInfo<ControlTest::ParamType>& info) {
  return test_name({std::get<0>(info.param), info.index}) + "_" + std::string(to_string(std::get<1>(info.param)));
}

/// Runs the tests of a suite derived from ControlTest on every device.
#define HEADRACE_WITH_EVERY_CONTROL(suite)                                                                          \
  INSTANTIATE_TEST_SUITE_P(                                                                                         \
      Devices, suite,                                                                                               \
      ::testing::Combine(::testing::ValuesIn(device_names()), ::testing::Values(Control::host, Control::resident)), \
      control_test_name)

/// What has been received of each stream.
struct Received {
  std::map<std::uint32_t, Bytes> bytes;
  std::map<std::uint32_t, Delivery> ends;
  std::map<std::uint32_t, ingest::Flow> opened;
  std::size_t frames = 0;

  void take(const Delivery& delivery) {
    switch (delivery.kind) {
      case Delivery::Kind::opened: opened[delivery.stream] = delivery.flow; return;
      case Delivery::Kind::ended: ends[delivery.stream] = delivery; return;
      case Delivery::Kind::part: return;  // its frame will follow
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

/// Steps until `enough`, and takes everything that arrives.
template <class Enough>
void step_until(Receiver& receiver, Received& received, const Enough& enough) {
  const auto give_up = std::chrono::steady_clock::now() + ingest::testing::kGuard;
  while (!enough()) {
    ASSERT_LT(std::chrono::steady_clock::now(), give_up);
    receiver.step(std::chrono::milliseconds(1));
    while (const auto delivery = receiver.next({})) received.take(*delivery);
  }
}

/// Takes a started receiver's deliveries until `enough` or its end.
template <class Enough>
void take_until(Receiver& receiver, Received& received, const Enough& enough) {
  const auto give_up = std::chrono::steady_clock::now() + ingest::testing::kGuard;
  while (!enough() && !receiver.ended()) {
    ASSERT_LT(std::chrono::steady_clock::now(), give_up);
    if (const auto delivery = receiver.next(std::chrono::milliseconds(20))) received.take(*delivery);
  }
}

/// Counters that include every packet received so far: resident control reports them late.
[[nodiscard]] inline ingest::ReceiverCounters settled_counters(Receiver& receiver) {
  const std::uint64_t came = receiver.counters().source.packets;
  const auto give_up = std::chrono::steady_clock::now() + ingest::testing::kGuard;
  while (receiver.counters().tcp.packets < came && std::chrono::steady_clock::now() < give_up) {
    receiver.step(std::chrono::milliseconds(1));
  }
  return receiver.counters();
}

}  // namespace headrace::testing
