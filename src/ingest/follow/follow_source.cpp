#include <algorithm>
#include <cstring>
#include <new>
#include <optional>
#include <utility>
#include <vector>

#include "headrace/ingest/follow.hpp"
#include "ingest/defragmenter.hpp"
#include "ingest/follow/follower.hpp"
#include "ingest/sources/slot_source.hpp"

namespace headrace::ingest {

namespace {

constexpr std::size_t kBurst = 64;
/// Most bursts that one receive() reads, so that it returns even if packets bring no stream bytes.
constexpr std::size_t kBurstsMost = 64;

class FollowingSource final : public SlotSource<FollowSource> {
 public:
  FollowingSource(Ring& ring, std::unique_ptr<Source> inner, Ring& between, const FollowOptions& options)
      : SlotSource(ring, "a source that follows TCP"),
        inner_(std::move(inner)),
        between_(between),
        trust_checksums_(options.trust_checksums),
        follower_(options),
        packets_(kBurst) {}

  [[nodiscard]] Layer layer() const noexcept override { return Layer::payload; }
  [[nodiscard]] bool ended() const noexcept override { return given_all() && !fault_; }
  [[nodiscard]] std::string failure() const override { return inner_->failure(); }
  [[nodiscard]] SourceCounters counters() const noexcept override { return inner_->counters(); }
  [[nodiscard]] std::deque<Followed>& followed() noexcept override { return followed_; }
  [[nodiscard]] FollowCounters follow_counters() const noexcept override { return follower_.counters(); }
  [[nodiscard]] FragmentCounters fragment_counters() const override { return defragmenter_.counters(); }

  [[nodiscard]] Result<std::size_t> receive(std::span<Packet> packets, Duration timeout) noexcept override {
    try {
      const std::size_t most = slots_.begin(packets.size());
      std::size_t count = 0;
      for (std::size_t bursts = 0; count < most && bursts < kBurstsMost; ++bursts) {
        put_items(packets.first(most), count);
        if (count == most || over_ || !read(count == 0 ? timeout : Duration{})) break;
      }
      put_items(packets.first(most), count);
      slots_.publish(count);
      if (count == 0 && fault_ && given_all()) return *fault_;
      return count;
    } catch (const std::bad_alloc&) {
      return Errc::out_of_memory;
    }
  }

 private:
  [[nodiscard]] bool given_all() const noexcept { return over_ && follower_.items().empty() && followed_.empty(); }

  /// Reads a burst of the inner source. False if none came.
  [[nodiscard]] bool read(Duration timeout) {
    const auto got = inner_->receive(packets_, timeout);
    if (!got) fault_ = got.error();
    if (!got || (*got == 0 && inner_->ended())) {
      over_ = true;
      follower_.end();
      return true;
    }
    const Layer layer = inner_->layer();
    const std::span<Packet> burst = std::span(packets_).first(*got);
    if (trust_checksums_) {
      for (Packet& packet : burst) packet.checksum_verified = true;
    }
    const std::size_t whole = defragmenter_.pass(burst, between_, layer);
    for (const Packet& packet : burst.first(whole)) take(packet, layer);
    between_.release(between_.published());
    if (*got == 0) follower_.flush();  // no more packets for now: give out what has come
    return *got != 0;
  }

  void take(const Packet& packet, Layer layer) {
    FollowCounters& counters = follower_.counters();
    const SegmentReader::Read read = reader_.read(between_.buffer().data() + packet.ring_offset, packet, layer);
    if (read.is_tcp) return follower_.take(read.segment);
    if (read.result == ParseResult::ok) {
      ++counters.other;
    } else {
      ++counters.unread[static_cast<std::size_t>(read.result)];
    }
  }

  /// Moves the follower's items into slots while there are slots.
  void put_items(std::span<Packet> packets, std::size_t& count) {
    std::deque<Follower::Item>& items = follower_.items();
    while (!items.empty()) {
      Follower::Item& item = items.front();
      while (item.length != 0) {
        if (count == packets.size()) return;
        put_chunk(item, packets[count], count);
        ++count;
      }
      if (item.kind != Followed::Kind::bytes && item.kind != Followed::Kind::missing) {
        followed_.push_back({.kind = item.kind,
                             .stream = item.stream,
                             .flow = item.flow,
                             .offset = item.offset,
                             .ring_end = slots_.position(count)});
      }
      items.pop_front();
      taken_ = 0;
    }
  }

  void put_chunk(Follower::Item& item, Packet& packet, std::size_t index) {
    const std::span<std::byte> slot = slots_.slot(index);
    const auto length = static_cast<std::size_t>(std::min<std::uint64_t>(item.length, slot.size()));
    if (item.kind == Followed::Kind::missing) {
      std::memset(slot.data(), 0, length);
    } else {
      std::memcpy(slot.data(), item.bytes.data() + taken_, length);
    }
    packet = {.ring_offset = slots_.ring_offset(index), .length = static_cast<std::uint32_t>(length)};
    followed_.push_back({.kind = item.kind,
                         .stream = item.stream,
                         .flow = item.flow,
                         .offset = item.offset,
                         .length = length,
                         .ring_offset = packet.ring_offset,
                         .ring_end = slots_.position(index + 1)});
    taken_ += length;
    item.offset += length;
    item.length -= length;
  }

  std::unique_ptr<Source> inner_;
  Ring& between_;
  bool trust_checksums_;
  Follower follower_;
  Defragmenter defragmenter_;
  SegmentReader reader_;
  std::vector<Packet> packets_;
  std::deque<Followed> followed_;
  std::size_t taken_ = 0;  ///< Bytes of the first item that are already in slots.
  bool over_ = false;      ///< The inner source has ended, or failed.
  std::optional<Error> fault_;
};

}  // namespace

std::unique_ptr<FollowSource> make_follow_source(Ring& ring, std::unique_ptr<Source> inner, Ring& between,
                                                 const FollowOptions& options) {
  return std::make_unique<FollowingSource>(ring, std::move(inner), between, options);
}

}  // namespace headrace::ingest
