#include "ingest/faulty_source.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "headrace/base/error.hpp"
#include "ingest/random.hpp"
#include "ingest/sources/slots.hpp"

namespace headrace::ingest {

namespace {

constexpr std::size_t kHeldMost = 64;
constexpr std::size_t kFaultyBurst = 64;

void check(const Faults& faults, const Slots& to, const Ring& from) {
  for (const double probability :
       {faults.loss, faults.duplication, faults.corruption, faults.reordering, faults.loss_sent}) {
    const bool is_one = probability >= 0 && probability <= 1;
    if (!is_one) {
      throw UsageError(fmt::format("the probability of a fault must be from 0 to 1, not {}", probability));
    }
  }
  if (faults.reorder_distance == 0 || faults.reorder_distance > kHeldMost) {
    throw UsageError(fmt::format("reorder_distance must be 1 to {}, not {}", kHeldMost, faults.reorder_distance));
  }
  if (to.slot_bytes() < from.slot_bytes()) {
    throw UsageError(
        fmt::format("slots of {} bytes are smaller than the slots of the ring that the inner source fills, {} bytes",
                    to.slot_bytes(), from.slot_bytes()));
  }
}

class Faulty final : public FaultySource {
 public:
  Faulty(Ring& ring, std::unique_ptr<Source> inner, Ring& between, Faults faults)
      : slots_(ring, "a faulty source"),
        inner_(std::move(inner)),
        between_(between),
        plan_(faults),
        random_(faults.seed),
        random_sent_(faults.seed + 1) {
    check(plan_, slots_, between_);
    held_.reserve(kHeldMost);
    for (std::size_t i = 0; i < kHeldMost; ++i) spare_.emplace_back(between_.slot_bytes());
  }

  [[nodiscard]] Layer layer() const noexcept override { return inner_->layer(); }
  [[nodiscard]] bool ended() const noexcept override {
    return inner_->ended() && next_ == arrived_ && held_.empty() && !duplicate_;
  }
  [[nodiscard]] std::string failure() const override { return inner_->failure(); }
  void close() noexcept override { inner_->close(); }
  [[nodiscard]] FaultCounters faults() const noexcept override { return faults_; }

  /// Counts the packets that came through, and those that the inner source dropped or truncated.
  [[nodiscard]] SourceCounters counters() const noexcept override {
    const SourceCounters inner = inner_->counters();
    SourceCounters all = counters_;
    all.dropped = inner.dropped + faults_.lost;
    all.truncated = inner.truncated;
    all.sent = inner.sent;
    all.sent_bytes = inner.sent_bytes;
    return all;
  }

  [[nodiscard]] Flow sender(std::size_t index) const noexcept override { return senders_[index]; }

  [[nodiscard]] Status send(std::span<const std::byte> packet) noexcept override {
    if (random_sent_.uniform() >= plan_.loss_sent) return inner_->send(packet);
    ++faults_.lost_sent;
    return {};
  }

  [[nodiscard]] Result<std::size_t> receive(std::span<Packet> packets, Duration timeout) noexcept override {
    out_ = packets.first(slots_.begin(std::min(packets.size(), kFaultyBurst)));
    count_ = 0;
    Status status;
    while (count_ < out_.size()) {
      if (give_held()) continue;
      if (duplicate_) {
        const Packet again = *std::exchange(duplicate_, std::nullopt);
        give(again, bytes_of(again), inner_->sender(next_ - 1));
      } else if (next_ < arrived_) {
        take(arrivals_[next_++]);
      } else {
        status = refill(count_ == 0 ? timeout : Duration{});
        if (next_ < arrived_) continue;
        if (held_.empty() || count_ != 0) break;
        held_.front().passing = 0;  // no packet comes that could pass it
      }
    }
    slots_.publish(count_);
    if (count_ == 0 && !status) return status.error();
    return count_;
  }

 private:
  struct Held {
    Packet packet;
    Flow sender;
    std::vector<std::byte> bytes;
    std::uint32_t passing = 0;  ///< How many others are still to pass it.
  };

  [[nodiscard]] std::span<std::byte> bytes_of(const Packet& packet) const noexcept {
    return {between_.buffer().data() + packet.ring_offset, packet.length};
  }

  Status refill(Duration timeout) noexcept {
    between_.release(between_.published());  // earlier packets have all been taken
    next_ = arrived_ = 0;
    const auto got = inner_->receive(arrivals_, timeout);
    if (!got) return got.error();
    arrived_ = *got;
    return {};
  }

  void take(const Packet& packet) noexcept {
    if (random_.uniform() < plan_.loss) {
      ++faults_.lost;
      return;
    }
    if (random_.uniform() < plan_.reordering && !spare_.empty()) {
      hold(packet);
      return;
    }
    if (random_.uniform() < plan_.duplication) {
      duplicate_ = packet;
      ++faults_.duplicated;
    }
    give(packet, bytes_of(packet), inner_->sender(next_ - 1));
    if (random_.uniform() < plan_.corruption) corrupt();
    for (Held& held : held_) --held.passing;
  }

  void hold(const Packet& packet) noexcept {
    held_.push_back({packet, inner_->sender(next_ - 1), std::move(spare_.back()),
                     1 + static_cast<std::uint32_t>(random_.below(plan_.reorder_distance))});
    spare_.pop_back();
    std::memcpy(held_.back().bytes.data(), bytes_of(packet).data(), packet.length);
    ++faults_.reordered;
  }

  [[nodiscard]] bool give_held() noexcept {
    const auto due = std::find_if(held_.begin(), held_.end(), [](const Held& held) { return held.passing == 0; });
    if (due == held_.end()) return false;
    give(due->packet, due->bytes, due->sender);
    spare_.push_back(std::move(due->bytes));
    held_.erase(due);
    return true;
  }

  void give(Packet packet, std::span<const std::byte> bytes, const Flow& sender) noexcept {
    senders_[count_] = sender;
    std::memcpy(slots_.slot(count_).data(), bytes.data(), packet.length);
    packet.ring_offset = slots_.ring_offset(count_);
    out_[count_++] = packet;
    ++counters_.packets;
    counters_.bytes += packet.length;
  }

  /// Corrupts the packet that was handed out last.
  void corrupt() noexcept {
    Packet& packet = out_[count_ - 1];
    if (packet.length == 0) return;
    const std::uint64_t bit = random_.below(std::uint64_t{packet.length} * 8);
    slots_.slot(count_ - 1)[bit / 8] ^= std::byte{1} << (bit % 8);
    packet.checksum_verified = false;
    ++faults_.corrupted;
  }

  Slots slots_;
  std::unique_ptr<Source> inner_;
  Ring& between_;
  Faults plan_;
  Random random_;
  Random random_sent_;
  std::array<Packet, kFaultyBurst> arrivals_;
  std::size_t next_ = 0;     ///< The next packet of arrivals_.
  std::size_t arrived_ = 0;  ///< How many packets arrivals_ has.
  std::vector<Held> held_;
  std::vector<std::vector<std::byte>> spare_;  ///< Memory for held packets.
  std::optional<Packet> duplicate_;            ///< A packet to hand out again next; its bytes are still in between_.
  std::span<Packet> out_;
  std::array<Flow, kFaultyBurst> senders_;  ///< The senders of out_.
  std::size_t count_ = 0;
  FaultCounters faults_;
  SourceCounters counters_;
};

}  // namespace

std::unique_ptr<FaultySource> make_faulty_source(Ring& ring, std::unique_ptr<Source> inner, Ring& between,
                                                 Faults faults) {
  return std::make_unique<Faulty>(ring, std::move(inner), between, faults);
}

}  // namespace headrace::ingest
