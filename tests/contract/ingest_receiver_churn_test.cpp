#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "receiver_support.hpp"
#include "tests/ingest_memory_network.hpp"
#include "tests/sanitizers.hpp"

/// Short connections one after the other, more at once than there are places, and a slow consumer: everything that a
/// sender was told has arrived is delivered. HEADRACE_INGEST_CONNECTIONS sets their number.
namespace headrace::testing {

using ingest::Packet;
using ingest::Reply;
using ingest::StreamEnd;
using ingest::TcpReception;
using ingest::testing::Answer;
using ingest::testing::MemorySender;
using ingest::testing::read_answer;

namespace {

constexpr std::size_t kTinyFrameBytes = 4096;
constexpr std::uint32_t kFewFrames = 2;

[[nodiscard]] std::uint32_t connections_in_all() {
  const char* const given = std::getenv("HEADRACE_INGEST_CONNECTIONS");
  return given == nullptr ? rounds(3000) : static_cast<std::uint32_t>(std::stoul(given));
}

/// What one sender was told.
struct Told {
  std::uint64_t acknowledged = 0;  ///< A FIN counts as one more.
  bool was_reset = false;
  bool resets = false;  ///< It ends with its own reset.
};

[[nodiscard]] std::size_t size_of(std::uint32_t connection) {
  std::mt19937 random(connection);
  switch (random() % 10) {
    case 0: return 0;
    case 1: return kTinyFrameBytes * (1 + random() % 2);
    case 2: return random() % 30'000;
    default: return 1 + random() % 2500;
  }
}

/// Senders that connect, send and leave, a fixed number at a time.
class Churn final : public ingest::SlotSource<ingest::Source> {
 public:
  Churn(Ring& ring, std::uint32_t total, std::uint32_t at_once)
      : SlotSource(ring, "short connections"), told(total), total_(total) {
    for (std::uint32_t i = 0; i < at_once && next_ < total_; ++i) senders_.push_back(begin());
  }

  [[nodiscard]] bool over() const { return senders_.empty(); }
  [[nodiscard]] static std::uint32_t connection_of(const ingest::Flow& flow) {
    const std::uint32_t host = flow.remote[0] >> 24;  // the last byte of an address of IPv4
    return (host - 1) * kPorts + flow.remote_port - kPortMin;
  }

  [[nodiscard]] ingest::Layer layer() const noexcept override { return ingest::Layer::ip; }
  [[nodiscard]] Result<std::size_t> receive(std::span<Packet> packets, Duration) noexcept override {
    const std::size_t most = slots_.begin(packets.size());
    std::size_t count = 0;
    const Time now = SteadyClock::now();
    for (std::size_t idle = 0; count < most && idle < senders_.size(); ++turn_) {
      One& one = senders_[turn_ % senders_.size()];
      const Bytes bytes = one.sender->next(now);
      note(one);
      if (bytes.empty()) {
        ++idle;
        if (one.sender->over() && one.over_at == Time{}) one.over_at = now;
        // It stays for a moment, in which its reset or its last acknowledgement may be requested again.
        if (one.sender->over() && now - one.over_at > kLinger && !replace(one)) idle = 0;
        continue;
      }
      idle = 0;
      std::memcpy(slots_.slot(count).data(), bytes.data(), bytes.size());
      packets[count] = {.ring_offset = slots_.ring_offset(count), .length = static_cast<std::uint32_t>(bytes.size())};
      SlotSource::count(packets[count++]);
    }
    slots_.publish(count);
    return count;
  }
  [[nodiscard]] Status send(std::span<const std::byte> packet) noexcept override {
    Reply reply;
    reply.length = static_cast<std::uint16_t>(packet.size());
    std::memcpy(reply.bytes, packet.data(), packet.size());
    const Answer answer = read_answer(reply);
    const auto host = std::to_integer<std::uint8_t>(packet[19]);
    for (One& one : senders_) {
      const ingest::testing::Peer& peer = one.sender->peer();
      if (peer.host != host || peer.port != answer.headers.flow.local_port) continue;
      one.sender->take(answer, SteadyClock::now());
      note(one);
    }
    count_sent(packet.size());
    return {};
  }

  std::vector<Told> told;

 private:
  static constexpr Duration kLinger = std::chrono::milliseconds(5);
  static constexpr std::uint32_t kPorts = 50'000;
  static constexpr std::uint32_t kPortMin = 1024;
  struct One {
    std::uint32_t connection;
    std::unique_ptr<MemorySender> sender;
    Time over_at{};
  };

  [[nodiscard]] One begin() {
    const std::uint32_t connection = next_++;
    const Bytes data = stream_of(connection, size_of(connection));
    MemorySender::Options options{
        .peer = {.host = static_cast<std::uint8_t>(1 + connection / kPorts),
                 .port = static_cast<std::uint16_t>(kPortMin + connection % kPorts)},
        .initial = connection * 2'654'435'761U,
        .segment_bytes = 200 + connection % 7 * 200,
    };
    if (connection % 13 == 5 && data.size() > 1) options.reset_at = data.size() / 2;
    told[connection].resets = options.reset_at.has_value();
    return {connection, std::make_unique<MemorySender>(data, options)};
  }
  void note(const One& one) {
    Told& of = told[one.connection];
    of.acknowledged = one.sender->acknowledged();
    of.was_reset = one.sender->was_reset();
  }
  /// False if there is none left.
  bool replace(One& one) {
    if (next_ < total_) {
      one = begin();
      return true;
    }
    std::swap(one, senders_.back());
    senders_.pop_back();
    return false;
  }

  std::uint32_t total_;
  std::uint32_t next_ = 0;
  std::vector<One> senders_;
  std::size_t turn_ = 0;
};

/// What the consumer received of each connection.
struct Delivered {
  std::uint64_t bytes = 0;
  bool right = true;
  std::optional<StreamEnd> end;
};

}  // namespace

class IngestReceiverChurn : public ControlTest {
 protected:
  void run(std::uint32_t places, std::uint32_t at_once) {
    const std::uint32_t total = connections_in_all();
    Ring ring(device(), MemoryKind::mapped, 2048, 256);
    Churn churn(ring, total, at_once);
    delivered_.assign(total, {});
    const ingest::ReceiverOptions options =
        with_control({.frames = {.frame_bytes = kTinyFrameBytes, .frame_count = kFewFrames}, .burst_packets = 64});
    TcpReception tcp{.connections = places};
    tcp.config.idle_max = 10 * ingest::TcpConfig::kSecond;  // for those whose reset did not have the exact number
    Receiver receiver(churn, ring, device(), tcp, options);
    std::mt19937 random(places);
    Time moved = SteadyClock::now();
    std::size_t away = 0;  // steps during which the consumer is busy elsewhere
    while (!churn.over() || receiver.counters().open_streams != 0 || receiver.counters().deliveries_waiting != 0) {
      ASSERT_LT(SteadyClock::now() - moved, ingest::testing::kGuard)
          << receiver.counters().open_streams << " open, " << receiver.counters().tcp.connections_waiting << " wait";
      receiver.step({});
      if (away > 0) {
        --away;
        continue;
      }
      if (random() % 1000 == 0) away = random() % 2000;
      for (auto left = random() % 3; left > 0; --left) {
        auto delivery = receiver.next({});
        if (!delivery) {
          if (!held_.empty()) held_.pop_front();  // the last streams may wait for their own frames
          break;
        }
        moved = SteadyClock::now();
        take(*delivery);
        if (delivery->kind == Delivery::Kind::frame) held_.push_back(*std::move(delivery));
        if (held_.size() > places / 2) held_.pop_front();
      }
    }
    held_.clear();
    compare(churn, settled_counters(receiver));
  }

 private:
  void take(const Delivery& delivery) {
    if (delivery.kind == Delivery::Kind::opened) connection_of_[delivery.stream] = Churn::connection_of(delivery.flow);
    const std::uint32_t connection = connection_of_.at(delivery.stream);
    Delivered& to = delivered_.at(connection);
    if (delivery.kind == Delivery::Kind::ended) {
      to.end = delivery.end;
      connection_of_.erase(delivery.stream);
    }
    if (delivery.kind != Delivery::Kind::frame) return;
    const Bytes came = content(device(), delivery.frame->frame());
    const Bytes want = stream_of(connection, size_of(connection));
    to.right = to.right && to.bytes + came.size() <= want.size() &&
               std::equal(came.begin(), came.end(), want.begin() + static_cast<std::ptrdiff_t>(to.bytes));
    to.bytes += came.size();
  }

  void compare(const Churn& churn, const ingest::ReceiverCounters& counters) {
    std::uint64_t lost = 0;
    std::uint64_t acknowledged = 0;
    std::uint64_t clean = 0;
    for (std::uint32_t i = 0; i < churn.told.size(); ++i) {
      const Told& told = churn.told[i];
      const Delivered& got = delivered_[i];
      const std::uint64_t size = size_of(i);
      const std::uint64_t bytes = std::min(told.acknowledged, size);
      acknowledged += bytes;
      lost += bytes - std::min(bytes, got.bytes);
      ASSERT_TRUE(got.right) << i;
      if (told.resets) continue;
      ASSERT_FALSE(told.was_reset) << i;
      ASSERT_EQ(told.acknowledged, size + 1) << i;
      ASSERT_EQ(got.bytes, size) << i;
      ASSERT_EQ(got.end, StreamEnd::finished) << i;
      ++clean;
    }
    EXPECT_EQ(lost, 0U);
    EXPECT_EQ(counters.memory_failures, 0U);
    EXPECT_GT(counters.tcp.waited, 0U);
    std::string told = std::to_string(churn.told.size()) + " connections, " + std::to_string(acknowledged) +
                       " bytes acknowledged, " + std::to_string(lost) + " of them not delivered, " +
                       std::to_string(clean) + " ends acknowledged and delivered, " +
                       std::to_string(counters.tcp.waited) + " connections waited";
    RecordProperty("figures", told);
    if (std::getenv("HEADRACE_INGEST_CONNECTIONS") != nullptr) GTEST_LOG_(INFO) << told;
  }

  std::map<std::uint32_t, std::uint32_t> connection_of_;
  std::vector<Delivered> delivered_;
  std::deque<Delivery> held_;
};
HEADRACE_WITH_EVERY_CONTROL(IngestReceiverChurn);

TEST_P(IngestReceiverChurn, NothingThatIsAcknowledgedIsLostWithFourPlaces) { run(4, 24); }
TEST_P(IngestReceiverChurn, NothingThatIsAcknowledgedIsLostWithManyPlaces) { run(64, 200); }

}  // namespace headrace::testing
