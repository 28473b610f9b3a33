#pragma once

#include <atomic>
#include <barrier>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "grid/layout.hpp"
#include "headrace/grid/detail/sweep_kernel.hpp"

/// Passes by teams of threads as on CUDA; here a team consists of a few host threads.
namespace headrace::grid {

/// A block of one team.
class TeamThread {
 public:
  static constexpr std::uint32_t kLanes = 1;
  static constexpr std::uint32_t kTeam = 8;
  struct Team {
    std::barrier<> barrier{kTeam};
    std::uint64_t values[kTeam] = {};
  };

  TeamThread(Team& team, std::uint32_t rank, std::uint32_t block, std::uint32_t blocks)
      : team_(&team), rank_(rank), block_(block), blocks_(blocks) {}

  [[nodiscard]] static std::uint32_t item() { return 0; }
  [[nodiscard]] std::uint32_t size() const { return kTeam; }
  [[nodiscard]] std::uint32_t block() const { return block_; }
  [[nodiscard]] std::uint32_t block_count() const { return blocks_; }
  [[nodiscard]] std::uint32_t team() const { return 0; }
  [[nodiscard]] std::uint32_t team_rank() const { return rank_; }
  template <class T>
  [[nodiscard]] T team_from(T value, std::uint32_t rank) const {
    std::memcpy(&team_->values[rank_], &value, sizeof(value));
    team_->barrier.arrive_and_wait();
    T found = value;
    if (rank < kTeam) std::memcpy(&found, &team_->values[rank], sizeof(found));
    team_->barrier.arrive_and_wait();
    return found;
  }
  [[nodiscard]] bool team_any(bool value) const {
    std::uint64_t all = 0;
    static_cast<void>(team_sum_before(std::uint64_t{value ? 1U : 0U}, all));
    return all > 0;
  }
  void team_sync() const { team_->barrier.arrive_and_wait(); }
  template <class T>
  T team_sum_before(T value, T& total) const {
    T before{};
    total = T{};
    for (std::uint32_t rank = 0; rank < kTeam; ++rank) {
      const T its = team_from(value, rank);
      if (rank < rank_) before += its;
      total += its;
    }
    return before;
  }
  [[nodiscard]] static std::uint64_t load_on_device(const std::uint64_t& word) {
    return std::atomic_ref(const_cast<std::uint64_t&>(word)).load(std::memory_order_acquire);
  }
  static void store_on_device(std::uint64_t& word, std::uint64_t value) {
    std::atomic_ref(word).store(value, std::memory_order_release);
  }
  static void relax_briefly() { std::this_thread::yield(); }
  static void launch_dependents() {}
  template <class T>
  static T fetch_add_relaxed_on_device(T& word, T value) {
    return std::atomic_ref(word).fetch_add(value, std::memory_order_relaxed);
  }
  template <class T>
  static void fetch_max_relaxed_on_device(T& word, T value) {
    std::atomic_ref all(word);
    T seen = all.load(std::memory_order_relaxed);
    while (seen < value && !all.compare_exchange_weak(seen, value, std::memory_order_relaxed)) {
    }
  }

 private:
  Team* team_;
  std::uint32_t rank_;
  std::uint32_t block_;
  std::uint32_t blocks_;
};

/// As CUDA compiles a pass: with separate code for each row of the window.
class FixedRowThread : public TeamThread {
 public:
  static constexpr bool kFixedRows = true;
  using TeamThread::TeamThread;
};

/// A domain of one part, and a second set of fields for what passes store.
template <class Stencil>
class Memory {
 public:
  using Value = typename Stencil::Value;

  Memory(const Extent& extent, std::int32_t rows)
      : layout_(lay_out(Box::whole(extent), {}, {}, layers(1), sizeof(Value))) {
    const auto bytes = static_cast<std::size_t>(layout_.field_bytes);
    lines_.resize(2 * Stencil::kFields * bytes / sizeof(Line) + 2);
    std::mt19937_64 random(7);
    for (Line& line : lines_) {
      for (Value& value : line.values) value = static_cast<Value>(static_cast<double>(random() % 2001) / 1000 - 1);
    }
    places_.from.base = reinterpret_cast<std::byte*>(lines_.data()) + layout_.front_bytes +
                        layout_.origin * static_cast<std::int64_t>(sizeof(Value));
    places_.from.stride_bytes = layout_.field_bytes;
    for (int field = 0; field < Stencil::kFields; ++field) {
      places_.from.slots[field] = static_cast<std::uint8_t>(field);
      places_.to[field] = static_cast<std::uint8_t>(Stencil::kFields + field);
    }
    const Region plain = layout_.region(extent);
    region_.pitch = plain.pitch;
    region_.plane = plain.plane;
    region_.rows[0] = rows;
    region_.held = layout_.local(Box::whole(extent));
    for (std::size_t axis = 0; axis < 3; ++axis) {
      region_.own_size[axis] = static_cast<std::int32_t>(extent.cells_along()[axis]);
      region_.extent[axis] = region_.own_size[axis];
    }
  }

  void take(const Box& box) { region_.boxes[0] = layout_.local(box); }
  /// Appends a box; `blocks` blocks of the item work on it.
  void take(std::size_t number, const Box& box, std::int32_t rows, std::uint32_t blocks) {
    region_.boxes[number] = layout_.local(box);
    region_.rows[number] = rows;
    region_.blocks[number] = blocks;
  }
  [[nodiscard]] const SweepPlaces& places() const { return places_; }
  [[nodiscard]] const SweepRegion& region() const { return region_; }
  friend bool operator==(const Memory& a, const Memory& b) { return a.lines_ == b.lines_; }

 private:
  struct alignas(128) Line {
    Value values[128 / sizeof(Value)];
    friend bool operator==(const Line&, const Line&) = default;
  };
  PartLayout layout_;
  std::vector<Line> lines_;
  SweepPlaces places_;
  SweepRegion region_;
};

/// Calls `body(thread)` in every thread of a block of one team.
template <class Thread = TeamThread, class Body>
void run_team(const Body& body, std::uint32_t block = 0, std::uint32_t blocks = 1) {
  TeamThread::Team team;
  std::vector<std::jthread> threads;
  for (std::uint32_t rank = 0; rank < TeamThread::kTeam; ++rank) {
    threads.emplace_back([&team, &body, rank, block, blocks] { body(Thread(team, rank, block, blocks)); });
  }
}

}  // namespace headrace::grid
