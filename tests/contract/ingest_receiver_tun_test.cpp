#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <thread>

#include "base/file_descriptor.hpp"
#include "headrace/base/error.hpp"
#include "headrace/ingest/tun_source.hpp"
#include "ingest/faulty_source.hpp"
#include "ingest/net/address.hpp"
#include "network.hpp"
#include "receiver_support.hpp"

/// Streams of this machine's own TCP, through a TUN device, in a network namespace.
namespace headrace::testing {

using ingest::ReceiverOptions;
using ingest::StreamBytes;
using ingest::StreamEnd;
using ingest::TcpReception;
using ingest::TunOptions;

namespace {

constexpr std::uint16_t kPort = 9000;
constexpr std::uint64_t kSeed = 11;

/// Sends this many bytes of StreamBytes(kSeed) through the kernel's TCP, and closes.
void send_stream(const ingest::IpAddress& address, std::uint64_t bytes) {
  const ingest::SocketAddress to = ingest::parse_address(to_string(address), kPort);
  const FileDescriptor socket(::socket(to.family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(::connect(socket.get(), to.get(), to.bytes), 0) << std::strerror(errno);
  const StreamBytes stream(kSeed);
  Bytes part(256 << 10);
  for (std::uint64_t offset = 0; offset < bytes;) {
    const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(part.size(), bytes - offset));
    stream.fill(offset, std::span(part).first(count));
    const ssize_t sent = ::send(socket.get(), part.data(), count, MSG_NOSIGNAL);
    ASSERT_GT(sent, 0) << std::strerror(errno);
    offset += static_cast<std::uint64_t>(sent);
  }
}

/// Compares with what was sent, without keeping it.
class Comparison {
 public:
  void take(Receiver& receiver) {
    const auto give_up = std::chrono::steady_clock::now() + ingest::testing::kGuard;
    while (!over_) {
      ASSERT_LT(std::chrono::steady_clock::now(), give_up) << bytes_ << " bytes came";
      const auto delivery = receiver.next(std::chrono::milliseconds(100));
      if (delivery && delivery->kind == Delivery::Kind::ended) {
        over_ = true;
        EXPECT_EQ(delivery->end, StreamEnd::finished);
        EXPECT_EQ(delivery->stream_bytes, bytes_);
      }
      if (!delivery || delivery->kind != Delivery::Kind::frame) continue;
      const ingest::Frame& frame = delivery->frame->frame();
      EXPECT_EQ(frame.stream_offset, bytes_);
      const Bytes came = content(delivery->frame->ring().device(), frame);
      want_.resize(came.size());
      stream_.fill(bytes_, want_);
      ASSERT_EQ(std::memcmp(came.data(), want_.data(), came.size()), 0) << "frame " << frame.number;
      bytes_ += came.size();
    }
  }
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }

 private:
  StreamBytes stream_{kSeed};
  Bytes want_;
  std::uint64_t bytes_ = 0;
  bool over_ = false;
};

}  // namespace

class IngestReceiverTun : public ControlTest {
 protected:
  /// Runs a test if TUN devices can be made, and otherwise skips it.
  static void with_tun(const TunOptions& options, std::size_t slots,
                       const std::function<void(std::unique_ptr<ingest::TunSource>, Ring&)>& body) {
    std::string lack;
    const std::string no_namespace = in_namespace([&] {
      Ring ring(device(), MemoryKind::mapped, 65536, slots);
      std::unique_ptr<ingest::TunSource> source;
      try {
        source = open_tun(ring, options);
      } catch (const SystemError& error) {
        if (error.code() != Errc::no_permission && error.code() != Errc::not_supported) throw;
        lack = error.what();
        return;
      }
      body(std::move(source), ring);
    });
    if (!no_namespace.empty() || !lack.empty()) GTEST_SKIP() << no_namespace << lack;
  }

  static TcpReception one_connection(std::uint32_t mtu) {
    TcpReception tcp{.connections = 1};
    tcp.config.port = kPort;
    tcp.config.mtu = static_cast<std::uint16_t>(mtu);
    return tcp;
  }

  static void expect_stream(const TunOptions& options, std::uint64_t bytes, std::size_t frame_bytes) {
    with_tun(options, 256, [&](std::unique_ptr<ingest::TunSource> source, Ring& ring) {
      Receiver receiver(*source, ring, device(), one_connection(options.mtu),
                        with_control({.frames = {.frame_bytes = frame_bytes}}));
      receiver.start();
      const std::jthread sender([&, address = source->address()] { send_stream(address, bytes); });
      Comparison comparison;
      comparison.take(receiver);
      EXPECT_EQ(comparison.bytes(), bytes);
      receiver.stop();
      EXPECT_EQ(receiver.counters().tcp.bytes, bytes);
    });
  }
};
HEADRACE_WITH_EVERY_CONTROL(IngestReceiverTun);

TEST_P(IngestReceiverTun, ALinuxSenderWithOffloads) { expect_stream({}, (256 << 20) + 12345, 16 << 20); }

TEST_P(IngestReceiverTun, ALinuxSenderOfSingleSegments) {
  expect_stream({.mtu = 576, .offloads = false}, 4 << 20, 1 << 20);
  expect_stream({.mtu = 1500, .offloads = false}, 32 << 20, 1'000'001);
  expect_stream({.mtu = 65535, .offloads = false}, 32 << 20, 1 << 20);
}

TEST_P(IngestReceiverTun, ALinuxSenderOfIpv6) {
  expect_stream({.address = "fd00:9::2"}, (64 << 20) + 12345, 16 << 20);
  expect_stream({.address = "fd00:9::2", .mtu = 1280, .offloads = false}, 4 << 20, 1'000'001);
  expect_stream({.address = "::", .mtu = 65535}, 32 << 20, 1 << 20);
}

TEST_P(IngestReceiverTun, ALinuxSenderOverABadNetwork) {
  struct Case {
    double loss;
    const char* address;
  };
  for (const Case& one : {Case{0.001, ""}, Case{0.01, "fd00:9::2"}, Case{0.05, ""}}) {
    const double loss = one.loss;
    SCOPED_TRACE(loss);
    with_tun({.address = one.address, .offloads = false}, 256,
             [&](std::unique_ptr<ingest::TunSource> source, Ring& between) {
               constexpr std::uint64_t kBytes = 4 << 20;
               Ring ring(device(), MemoryKind::mapped, 65536, 256);
               const ingest::IpAddress to = source->address();
               const auto faulty = ingest::make_faulty_source(ring, std::move(source), between,
                                                              {.loss = loss,
                                                               .duplication = 0.01,
                                                               .corruption = 0.01,
                                                               .reordering = 0.01,
                                                               .loss_sent = loss,
                                                               .seed = 3});
               Receiver receiver(*faulty, ring, device(), one_connection(1500),
                                 with_control({.frames = {.frame_bytes = 1 << 20}}));
               receiver.start();
               const std::jthread sender([&] { send_stream(to, kBytes); });
               Comparison comparison;
               comparison.take(receiver);
               EXPECT_EQ(comparison.bytes(), kBytes);
               receiver.stop();
               EXPECT_GT(faulty->faults().lost, 0U);
             });
  }
}

TEST_P(IngestReceiverTun, AStoppedReceiverResetsItsPeer) {
  with_tun({}, 256, [&](std::unique_ptr<ingest::TunSource> source, Ring& ring) {
    Receiver receiver(*source, ring, device(), one_connection(1500),
                      with_control({.frames = {.frame_bytes = 1 << 20}}));
    receiver.start();
    const ingest::SocketAddress to = ingest::parse_address(to_string(source->address()), kPort);
    const FileDescriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(::connect(socket.get(), to.get(), to.bytes), 0) << std::strerror(errno);
    ASSERT_EQ(::send(socket.get(), "x", 1, MSG_NOSIGNAL), 1) << std::strerror(errno);  // a stream opens with a byte
    Received received;
    take_until(receiver, received, [&] { return received.opened.size() == 1; });
    receiver.stop();
    std::byte byte{};
    EXPECT_EQ(::recv(socket.get(), &byte, 1, 0), -1);
    EXPECT_EQ(errno, ECONNRESET);
  });
}

TEST_P(IngestReceiverTun, ADeletedDeviceIsNamed) {
  with_tun({.name = "shortlived"}, 256, [&](std::unique_ptr<ingest::TunSource> source, Ring& ring) {
    Receiver receiver(*source, ring, device(), one_connection(1500),
                      with_control({.frames = {.frame_bytes = 1 << 20}}));
    receiver.start();
    command("ip link del shortlived");
    std::string why;
    try {
      (void)receiver.next(ingest::testing::kGuard);
    } catch (const SystemError& error) {
      why = error.what();
    }
    EXPECT_EQ(why.find("receiving packets: the network device shortlived has been deleted"), 0U) << why;
  });
}

}  // namespace headrace::testing
