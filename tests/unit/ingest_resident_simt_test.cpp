#include <algorithm>
#include <array>
#include <atomic>
#include <barrier>
#include <bit>
#include <chrono>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "ingest/resident/control.hpp"
#include "ingest/resident/memory.hpp"
#include "ingest/resident/roles.hpp"
#include "tests/ingest_peer.hpp"

/// The roles of resident control as CUDA runs them, in blocks of several threads and teams, on host threads.
namespace headrace::ingest::resident {

namespace {

using testing::Bytes;
using testing::kAck;
using testing::kFin;
using testing::kSyn;

/// Blocks of two teams of four threads: the code is the same for any power of two.
class SimtGroup : public CpuGroup {
 public:
  static constexpr std::uint32_t kLanes = 1;
  static constexpr std::uint32_t kTeam = 4;
  static constexpr std::uint32_t kTeams = 2;
  static constexpr std::uint32_t kSize = kTeam * kTeams;

  template <std::uint32_t Threads>
  struct Meeting {
    struct alignas(64) Value {
      std::byte bytes[64];
    };
    std::barrier<> barrier{Threads};
    std::array<Value, Threads> values{};

    template <class T>
    [[nodiscard]] std::array<T, Threads> exchange(std::uint32_t rank, const T& value) {
      static_assert(sizeof(T) <= sizeof(Value));
      std::memcpy(values[rank].bytes, &value, sizeof(T));
      barrier.arrive_and_wait();
      std::array<T, Threads> all;
      for (std::uint32_t i = 0; i < Threads; ++i) {
        std::memcpy(static_cast<void*>(&all[i]), values[i].bytes, sizeof(T));
      }
      barrier.arrive_and_wait();
      return all;
    }
  };
  struct Block {
    Meeting<kSize> all;
    std::array<Meeting<kTeam>, kTeams> teams;
    alignas(64) std::byte memory[48 * 1024];
  };

  SimtGroup(Block& block, std::uint32_t rank, std::uint32_t number, std::uint32_t count)
      : CpuGroup(number, count), block_(&block), rank_(rank) {}

  [[nodiscard]] std::uint32_t rank() const { return rank_; }
  [[nodiscard]] static constexpr std::uint32_t size() { return kSize; }
  void sync() const { block_->all.barrier.arrive_and_wait(); }
  template <class T>
  [[nodiscard]] T& shared() const {
    static_assert(sizeof(T) <= sizeof(Block::memory));
    return *reinterpret_cast<T*>(block_->memory);
  }
  template <class T>
  [[nodiscard]] T broadcast(T value) const {
    return block_->all.exchange(rank_, value)[0];
  }
  template <class T>
  [[nodiscard]] T sum_before(T value, T& total) const {
    return before(block_->all.exchange(rank_, value), rank_, total);
  }

  [[nodiscard]] std::uint32_t team() const { return rank_ / kTeam; }
  [[nodiscard]] std::uint32_t team_rank() const { return rank_ % kTeam; }
  void team_sync() const { mine().barrier.arrive_and_wait(); }
  template <class T>
  [[nodiscard]] T team_sum_before(T value, T& total) const {
    return before(mine().exchange(team_rank(), value), team_rank(), total);
  }
  template <class T>
  [[nodiscard]] T team_from(const T& value, std::uint32_t rank) const {
    return mine().exchange(team_rank(), value).at(rank);
  }
  [[nodiscard]] std::uint32_t team_or(std::uint32_t value) const {
    std::uint32_t any = 0;
    for (const std::uint32_t one : mine().exchange(team_rank(), value)) any |= one;
    return any;
  }
  [[nodiscard]] std::uint32_t team_ballot(bool value) const { return team_or(value ? 1U << team_rank() : 0U); }
  [[nodiscard]] static std::uint32_t lowest_bit(std::uint32_t mask) {
    return static_cast<std::uint32_t>(std::countr_zero(mask));
  }

 private:
  template <class All, class T>
  [[nodiscard]] static T before(const All& all, std::uint32_t rank, T& total) {
    T sum{};
    total = T{};
    for (std::uint32_t i = 0; i < all.size(); ++i) {
      if (i == rank) sum = total;
      total += all[i];
    }
    return sum;
  }
  [[nodiscard]] Meeting<kTeam>& mine() const { return block_->teams[team()]; }

  Block* block_;
  std::uint32_t rank_;
};

/// The blocks, and a host that communicates with them.
class Resident {
 public:
  static constexpr std::uint32_t kBlocks = 4;
  static constexpr std::size_t kSlot = 256;
  static constexpr std::size_t kFrame = 4096;
  static constexpr std::uint32_t kFrames = 3;

  Resident()
      : device_(Device::parse("cpu:0")),
        ring_(device_, MemoryKind::mapped, kSlot * 1024),
        frames_(device_, MemoryKind::device, kFrame * kFrames),
        stream_(device_),
        memory_(device_, ring_, Layer::ip, options(), stream_),
        view(memory_.view()) {
    for (std::uint32_t block = 0; block < kBlocks; ++block) {
      for (std::uint32_t rank = 0; rank < SimtGroup::kSize; ++rank) {
        threads_.emplace_back(
            [this, block, rank] { take_role(SimtGroup(blocks_[block], rank, block, kBlocks), view); });
      }
    }
  }
  ~Resident() { tell(view.host[kStop], 1); }

  void write(const testing::Segment& segment) {
    const Bytes bytes = tcp_packet({}, segment);
    const std::uint64_t offset = packets_ % (ring_.bytes() / kSlot) * kSlot;
    std::memcpy(ring_.data() + offset, bytes.data(), bytes.size());
    view.packets[packets_ & view.packet_mask] = {.ring_offset = offset,
                                                 .length = static_cast<std::uint32_t>(bytes.size())};
    ++packets_;
  }
  void post() {
    tell(view.host[kNow], now_ += testing::kMs);
    tell(view.host[kPacketsEnd], packets_);
  }
  void command(const Command& command) {
    view.commands[commands_ & view.command_mask] = command;
    tell(view.host[kCommandsEnd], ++commands_);
  }
  [[nodiscard]] static std::uint64_t heard(std::uint64_t& word) {
    return std::atomic_ref(word).load(std::memory_order_acquire);
  }
  [[nodiscard]] static bool reaches(std::uint64_t& word, std::uint64_t value) {
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (heard(word) < value) {
      if (std::chrono::steady_clock::now() > give_up) return false;
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
    return true;
  }
  [[nodiscard]] std::byte* frames() const { return frames_.data(); }
  [[nodiscard]] std::uint64_t packets() const { return packets_; }

 private:
  [[nodiscard]] static ResidentOptions options() {
    ResidentOptions options;
    options.tcp = testing::test_config(kFrame * kFrames);
    options.tcp.initial_streams = 0;
    options.connections = 2;
    options.frames_max = 4;
    options.packets = 1024;
    options.parts = 8192;
    options.replies = options.events = 1024;
    options.commands = 16;
    return options;
  }
  static void tell(std::uint64_t& word, std::uint64_t value) {
    std::atomic_ref(word).store(value, std::memory_order_release);
  }

  Device device_;
  Buffer ring_;
  Buffer frames_;
  Stream stream_;
  Memory memory_;
  std::uint64_t packets_ = 0;
  std::uint64_t commands_ = 0;
  std::uint64_t now_ = 1000 * testing::kSecond;
  std::array<SimtGroup::Block, kBlocks> blocks_;

 public:
  const View view;

 private:
  std::vector<std::jthread> threads_;
};

/// Segments of 50 to 100 bytes.
std::vector<std::pair<std::size_t, std::size_t>> segments_of(std::size_t bytes, std::mt19937& random) {
  std::vector<std::pair<std::size_t, std::size_t>> cuts;
  for (std::size_t at = 0; at < bytes;) {
    const std::size_t length = std::min<std::size_t>(bytes - at, 50 + random() % 51);
    cuts.emplace_back(at, length);
    at += length;
  }
  return cuts;
}

}  // namespace

TEST(IngestResidentSimt, BlocksOfSeveralThreadsBuildFrames) {
  for (std::uint32_t seed = 0; seed < 3; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    Resident resident;
    const View& view = resident.view;
    const Bytes data = testing::pattern(seed, Resident::kFrame * Resident::kFrames);
    constexpr std::uint32_t kInitial = 0xFFFFF000;
    resident.command({.kind = CommandKind::attach,
                      .stream = 0,
                      .slot = 1,
                      .frame_count = Resident::kFrames,
                      .frame_bytes = Resident::kFrame,
                      .stride = Resident::kFrame,
                      .frames = resident.frames()});
    ASSERT_TRUE(Resident::reaches(*view.commands_done, 1));
    resident.write({.sequence = kInitial, .flags = kSyn, .options = testing::syn_options(1460, 7, true)});
    resident.post();
    ASSERT_TRUE(Resident::reaches(*view.replies_end, 1));
    const std::uint32_t theirs = testing::read_answer(view.replies[0]).sequence() + 1;
    const auto write = [&](std::size_t at, std::size_t length, std::uint8_t flags) {
      const auto from = data.begin() + static_cast<std::ptrdiff_t>(at);
      resident.write({.sequence = kInitial + 1 + static_cast<std::uint32_t>(at),
                      .acknowledgement = theirs,
                      .flags = flags,
                      .payload = Bytes(from, from + static_cast<std::ptrdiff_t>(length))});
    };
    write(0, 0, kAck);
    resident.post();
    ASSERT_TRUE(Resident::reaches(*view.events_end, 1));
    ASSERT_EQ(view.events[0].kind, StreamEvent::opened);

    // A run that fills most of a window, then overtaking segments, duplicates, and more runs.
    auto cuts = segments_of(data.size(), random);
    const auto in_order = static_cast<std::ptrdiff_t>(cuts.size() / 3 + random() % 60);
    for (std::ptrdiff_t i = 5; i < 40; ++i) cuts.push_back(cuts[static_cast<std::size_t>(i)]);
    for (auto i = static_cast<std::size_t>(in_order); i < cuts.size(); ++i) {
      if (random() % 3 == 0) std::swap(cuts[i], cuts[i - std::min<std::size_t>(i, random() % 8)]);
    }
    for (const auto& [at, length] : cuts) write(at, length, kAck);
    resident.post();
    ASSERT_TRUE(Resident::reaches(*view.copied, resident.packets()));
    for (std::uint64_t f = 0; f < Resident::kFrames; ++f) {
      EXPECT_EQ(Resident::heard(view.frames[view.places_per_slot + f].number_end), f + 1);
    }
    EXPECT_EQ(std::memcmp(resident.frames(), data.data(), data.size()), 0);
    write(data.size(), 0, kAck | kFin);
    resident.post();
    ASSERT_TRUE(Resident::reaches(*view.events_end, 2));
    EXPECT_EQ(view.events[1].kind, StreamEvent::finished);
    EXPECT_EQ(view.events[1].offset, data.size());
    resident.command({.kind = CommandKind::report});
    ASSERT_TRUE(Resident::reaches(*view.commands_done, 2));
    EXPECT_EQ(view.counters->packets, resident.packets());
    EXPECT_EQ(view.counters->bytes, data.size());
    EXPECT_GT(view.counters->duplicate_bytes, 0U);
  }
}

}  // namespace headrace::ingest::resident
