#pragma once

#include <algorithm>
#include <cstring>
#include <deque>
#include <memory>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "ingest/sources/slot_source.hpp"
#include "tests/ingest_memory_sender.hpp"

/// In-memory TCP senders as a source, for tests of receivers.
namespace headrace::ingest::testing {

/// A network of senders; used by one thread, like all sources.
class MemoryNetwork final : public SlotSource<Source> {
 public:
  explicit MemoryNetwork(Ring& ring) : SlotSource(ring, "a network in memory") {}

  MemorySender& add(Bytes data, const MemorySender::Options& options) {
    return *senders_.emplace_back(std::make_unique<MemorySender>(std::move(data), options));
  }

  /// From now on checksums count as verified, and payloads go where the receiver expects them. `trouble` is the share
  /// of packets that are lost, the share that arrive twice, and the share that arrive after their successor.
  void write_in_place(double trouble, std::uint32_t seed) {
    in_place_ = true;
    trouble_ = trouble;
    random_.seed(seed);
  }
  /// Bytes written directly where the receiver expected them.
  [[nodiscard]] std::uint64_t placed_bytes() const { return placed_bytes_; }

  void expect(const Expectation& expectation) noexcept override { expected_ = expectation; }
  [[nodiscard]] std::span<const std::uint32_t> placed() const noexcept override { return placed_; }

  [[nodiscard]] Layer layer() const noexcept override { return Layer::ip; }
  [[nodiscard]] Result<std::size_t> receive(std::span<Packet> packets, Duration timeout) noexcept override {
    const std::size_t most = slots_.begin(packets.size());
    std::size_t count = 0;
    const Time now = SteadyClock::now();
    placed_.clear();
    for (std::size_t idle = 0; count < most && idle < senders_.size(); ++turn_) {
      Bytes bytes = std::exchange(held_, {});
      if (bytes.empty()) bytes = senders_[turn_ % senders_.size()]->next(now);
      if (bytes.empty()) {
        ++idle;
        continue;
      }
      idle = 0;
      const double luck = trouble_ == 0 ? 1 : std::uniform_real_distribution<>()(random_);
      if (luck < trouble_) continue;
      if (luck < 2 * trouble_) held_ = bytes;
      if (luck >= 2 * trouble_ && luck < 3 * trouble_) {
        held_ = std::exchange(bytes, senders_[turn_ % senders_.size()]->next(now));
        if (bytes.empty()) continue;
      }
      write(bytes, count);
      packets[count] = {.ring_offset = slots_.ring_offset(count),
                        .length = static_cast<std::uint32_t>(bytes.size()),
                        .checksum_verified = in_place_};
      SlotSource::count(packets[count++]);
    }
    slots_.publish(count);
    expected_ = {};
    if (count == 0) std::this_thread::sleep_for(std::min<Duration>(timeout, std::chrono::milliseconds(1)));
    return count;
  }
  [[nodiscard]] Status send(std::span<const std::byte> packet) noexcept override {
    Reply reply;
    reply.length = static_cast<std::uint16_t>(packet.size());
    std::memcpy(reply.bytes, packet.data(), packet.size());
    const Answer answer = read_answer(reply);
    for (const auto& sender : senders_) {
      const Peer& peer = sender->peer();
      const std::uint32_t version = answer.headers.flow.version;
      const auto host = std::to_integer<std::uint8_t>(packet[version == 4 ? 19 : 39]);  // last byte of the destination
      if (peer.version == version && peer.host == host && peer.port == answer.headers.flow.local_port)
        sender->take(answer, SteadyClock::now());
    }
    count_sent(packet.size());
    return {};
  }

 private:
  void write(const Bytes& bytes, std::size_t index) {
    std::byte* const slot = slots_.slot(index).data();
    const std::size_t headers = std::min<std::size_t>(expected_.header_bytes, bytes.size());
    const std::size_t here = in_place_ ? std::min(expected_.place.size(), bytes.size() - headers) : 0;
    std::memcpy(slot, bytes.data(), headers);
    std::memset(slot + headers, 0x5A, here);  // stale bytes
    if (here != 0) std::memcpy(expected_.place.data(), bytes.data() + headers, here);
    std::memcpy(slot + headers + here, bytes.data() + headers + here, bytes.size() - headers - here);
    expected_.place = expected_.place.subspan(here);
    placed_.push_back(static_cast<std::uint32_t>(here));
    placed_bytes_ += here;
  }

  bool in_place_ = false;
  double trouble_ = 0;
  std::mt19937 random_;
  Bytes held_;
  Expectation expected_;
  std::vector<std::uint32_t> placed_;
  std::uint64_t placed_bytes_ = 0;
  std::vector<std::unique_ptr<MemorySender>> senders_;
  std::size_t turn_ = 0;
};

}  // namespace headrace::ingest::testing
