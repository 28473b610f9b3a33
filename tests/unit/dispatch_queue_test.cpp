#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstring>
#include <memory>
#include <span>
#include <thread>
#include <type_traits>
#include <vector>

#include "headrace/serve/detail/direct_lane.hpp"
#include "headrace/serve/detail/dispatch_kernel.hpp"

/// The queue of a dispatched pool at its shortest length, with a block that is slow to look for its entry.
namespace headrace::serve {
namespace {

/// Answers a number with another one.
struct Triple {
  [[maybe_unused]] static constexpr const char* kName = "test::triple";
  using Query = std::uint32_t;
  using Answer = std::uint32_t;
  struct State {};

  template <class Group>
  static void answer(Group group, const State& /*state*/, const Query* query, Answer* answer) {
    if (group.thread() == 0) *answer = 3 * *query + 1;
  }
};

/// Keeps one block from looking for the entry that it has drawn, and block 0 from reading tails; reports how far both
/// are.
struct Held {
  const void* next_ticket = nullptr;
  const void* taken = nullptr;
  std::atomic<bool> drawn{false};
  std::atomic<bool> waited_for{false};  ///< Block 0 has asked whether entries have been read.
  std::atomic<bool> released{false};
  std::span<const std::uint32_t> tails;
  std::atomic<bool> tails_held{false};
  std::atomic<bool> but_one{false};  ///< Lets the next read pass and is false again after it.
  std::atomic<bool> at_hold{false};
  std::atomic<std::uint64_t> reads{0};       ///< Reads of tails and the stop word that block 0 has begun.
  std::atomic<std::uint64_t> units_read{0};  ///< By block 0, of expected queries.
};

class HeldGroup : public CpuGroup {
 public:
  HeldGroup(std::uint32_t block, std::uint32_t blocks, Held& held) : CpuGroup(block, blocks), held_(&held) {}

  template <class T>
  T fetch_add_relaxed_on_device(T& word, T value) const {
    const T before = CpuGroup::fetch_add_relaxed_on_device(word, value);
    if (&word != held_->next_ticket || block() != 1 || held_->drawn.exchange(true)) return before;
    while (!held_->released.load()) std::this_thread::yield();
    return before;
  }
  template <class T>
  [[nodiscard]] T load_on_device(const T& word) const {
    if (&word == held_->taken) held_->waited_for = true;
    return CpuGroup::load_on_device(word);
  }
  template <class T>
  [[nodiscard]] T load(const T& word) const {
    if constexpr (std::is_same_v<T, std::uint32_t>) {
      if (&word >= held_->tails.data() && &word <= &held_->tails.back()) {
        ++held_->reads;
        while (held_->tails_held.load() && !held_->but_one.exchange(false)) {
          held_->at_hold = true;
          std::this_thread::yield();
        }
      }
    }
    return CpuGroup::load(word);
  }
  [[nodiscard]] SealedUnit load_unit(const SealedUnit& from) const {
    const SealedUnit unit = CpuGroup::load_unit(from);
    ++held_->units_read;
    return unit;
  }

 private:
  Held* held_;
};

/// Reads that make a query lone: of both tails and the stop word, one possibly under way, and one begun.
constexpr std::uint64_t kQuietly = 5;

/// A pool on threads of the test, with all of its words in the test's memory.
class TestPool {
 public:
  static constexpr std::uint32_t kLanes = 2;

  /// @param writes_lone  clients write queries that come alone a second time, where the pool answers inline
  TestPool(std::uint32_t slots, std::uint32_t blocks, bool answers_inline = false, bool writes_lone = true)
      : answers_inline_(answers_inline) {
    view_.lane_count = kLanes;
    view_.slots = slots;
    view_.queue_log2 = static_cast<std::uint32_t>(std::bit_width(2 * kLanes * slots - 1));
    view_.query_stride = view_.answer_stride = kStride;
    view_.query_bytes = view_.answer_bytes = sizeof(std::uint32_t);
    view_.blocks = blocks;
    const std::size_t all = std::size_t{kLanes} * slots;
    queries_.resize(all);
    answers_.resize(all);
    parts_.resize(all);
    arrived_.resize(all);
    entries_.resize(std::size_t{1} << view_.queue_log2);
    tails_.resize((kLanes + 1) * DispatchView::kTailStride);
    view_.queries = bytes(queries_);
    view_.answers = bytes(answers_);
    view_.parts = bytes(parts_);
    view_.tails = tails_.data();
    view_.heartbeat = &heartbeat_;
    view_.entries = entries_.data();
    view_.next_ticket = &next_ticket_;
    view_.taken = taken_.data();
    view_.leave = &leave_;
    view_.first_tails = first_tails_.data();
    view_.arrived = arrived_.data();
    if (answers_inline) view_.lone = lone.data();
    view_.lone_stride = 1;
    held.next_ticket = &next_ticket_;
    held.taken = taken_.data();
    held.tails = tails_;
    for (std::uint32_t lane = 0; lane < kLanes; ++lane)
      lanes_.push_back(make_lane(lane, answers_inline && writes_lone));
  }
  TestPool(const TestPool&) = delete;
  TestPool& operator=(const TestPool&) = delete;
  ~TestPool() {
    held.released = true;
    held.tails_held = false;
    CpuGroup::store(tails_[kLanes * DispatchView::kTailStride], std::uint32_t{1});
    threads_.clear();
  }

  /// Starts block `block` of `all`: block 0 dispatches queries, the others answer them.
  void start(std::uint32_t block, std::uint32_t all) {
    threads_.emplace_back([this, group = HeldGroup(block, all, held)] {
      if (answers_inline_) {
        InlineDispatchBody<Triple>::run(group, Triple::State{}, view_);
      } else {
        DispatchBody<Triple>::run(group, Triple::State{}, view_);
      }
    });
  }
  /// Submits the next query of a lane, which must have a free slot; returns its place.
  std::uint64_t submit(std::uint32_t lane, std::uint32_t query) {
    std::array<std::byte, sizeof(query)> bytes{};
    std::memcpy(bytes.data(), &query, sizeof(query));
    lanes_[lane]->submit(bytes.data(), query, Time::max());
    return lanes_[lane]->next() - 1;
  }
  [[nodiscard]] bool back(std::uint32_t lane, std::uint64_t position) const { return lanes_[lane]->back(position); }
  void await(std::uint32_t lane, std::uint64_t position) const {
    while (!back(lane, position)) std::this_thread::yield();
  }
  /// Takes the answers of a lane, all of which must be right; returns their number.
  std::size_t poll(std::uint32_t lane) {
    const auto check = [](std::uint64_t, std::uint64_t tag, Status status, std::span<const std::byte> bytes) {
      std::uint32_t answer = 0;
      std::memcpy(&answer, bytes.data(), sizeof(answer));
      EXPECT_TRUE(status);
      EXPECT_EQ(answer, static_cast<std::uint32_t>(3 * tag + 1));
    };
    return lanes_[lane]->poll(check, view_.slots);
  }
  /// Waits until a query has got the first ticket.
  void await_first_entry() const {
    while (CpuGroup::load(entries_[0]) == 0) std::this_thread::yield();
  }
  /// Waits until block 0 has begun `count` more reads; the last one may still be under way.
  void await_reads(std::uint64_t count) const {
    const std::uint64_t end = held.reads + count;
    while (held.reads < end) std::this_thread::yield();
  }
  /// Submits a lone query and takes its answer.
  void answer_alone(std::uint32_t lane, std::uint32_t query) {
    await_reads(kQuietly);
    await(lane, submit(lane, query));
    EXPECT_EQ(poll(lane), 1U);
  }
  /// Has queries of a lane answered until block 0 watches for the next one.
  void let_it_watch(std::uint32_t lane) {
    for (std::uint32_t query = 0; query < 2; ++query) answer_alone(lane, query);
    const std::uint64_t before = held.units_read;
    while (held.units_read < before + 3) std::this_thread::yield();
  }
  /// Holds block 0 at its next read until tails_held is false.
  void hold_tails() {
    held.at_hold = false;
    held.tails_held = true;
    while (!held.at_hold) std::this_thread::yield();
  }
  /// Lets block 0 go on to the read after that.
  void let_one_read_pass() {
    const std::uint64_t before = held.reads;
    held.but_one = true;
    while (held.reads == before) std::this_thread::yield();
  }
  /// Queries that are or were in the queue, up to its length.
  [[nodiscard]] std::size_t queued() const {
    return static_cast<std::size_t>(
        std::ranges::count_if(entries_, [](const std::uint64_t& entry) { return CpuGroup::load(entry) != 0; }));
  }
  [[nodiscard]] bool full(std::uint32_t lane) const { return lanes_[lane]->full(view_.slots); }

  Held held;
  std::array<SealedUnit, kLanes> lone{};

 private:
  static constexpr std::uint32_t kStride = 64;
  struct alignas(kStride) Slot {
    std::array<std::byte, kStride> bytes{};
  };

  [[nodiscard]] static std::byte* bytes(std::vector<Slot>& slots) { return slots.front().bytes.data(); }

  std::unique_ptr<detail::DirectLane> make_lane(std::uint32_t lane, bool writes_lone) {
    const std::size_t first = std::size_t{lane} * view_.slots;
    detail::DirectLane::Memory memory;
    memory.queries = queries_[first].bytes.data();
    memory.answers = answers_[first].bytes.data();
    memory.tail = &tails_[lane * DispatchView::kTailStride];
    if (writes_lone) memory.lone = &lone[lane];
    memory.query_stride = memory.answer_stride = kStride;
    return std::make_unique<detail::DirectLane>(memory, view_.slots, view_.query_bytes, view_.answer_bytes, 0, nullptr);
  }

  bool answers_inline_;
  std::vector<Slot> queries_;
  std::vector<Slot> answers_;
  std::vector<Slot> parts_;
  std::vector<std::uint32_t> arrived_;
  std::vector<std::uint64_t> entries_;
  std::vector<std::uint32_t> tails_;
  std::array<std::uint32_t, 2 * DispatchView::kTakenStride> taken_{};
  std::array<std::uint32_t, kLanes> first_tails_{};
  std::uint64_t next_ticket_ = 0;
  std::uint32_t leave_ = 0;
  std::uint32_t heartbeat_ = 0;
  DispatchView view_;
  std::vector<std::unique_ptr<detail::DirectLane>> lanes_;
  std::vector<std::jthread> threads_;
};

TEST(DispatchQueue, AnEntryIsNotOverwrittenBeforeItsBlockHasLooked) {
  TestPool pool(1, 1);  // a queue of four entries
  pool.start(0, 3);
  pool.start(1, 3);
  while (!pool.held.drawn) std::this_thread::yield();
  pool.start(2, 3);
  const std::uint64_t slow = pool.submit(0, 100);  // ticket 0, which block 1 has drawn
  pool.await_first_entry();
  for (std::uint32_t query = 1; query <= 3; ++query) {
    pool.await(1, pool.submit(1, query));
    EXPECT_EQ(pool.poll(1), 1U);
  }
  const std::uint64_t fifth = pool.submit(1, 4);  // would take the entry of ticket 0
  while (!pool.held.waited_for && !pool.back(1, fifth)) std::this_thread::yield();
  EXPECT_FALSE(pool.back(1, fifth));
  EXPECT_FALSE(pool.back(0, slow));
  if (HasFailure()) return;
  pool.held.released = true;
  pool.await(0, slow);
  pool.await(1, fifth);
  EXPECT_EQ(pool.poll(0), 1U);
  EXPECT_EQ(pool.poll(1), 1U);
}

TEST(DispatchQueue, AShortQueueGoesRoundAndRound) {
  struct Case {
    std::uint32_t blocks;
    bool answers_inline;
  };
  for (const auto& [blocks, answers_inline] : {Case{1, false}, Case{3, false}, Case{1, true}}) {
    SCOPED_TRACE(::testing::Message() << blocks << (answers_inline ? " inline" : ""));
    constexpr std::uint32_t kQueries = 500;
    TestPool pool(2, blocks, answers_inline);
    pool.held.released = true;
    for (std::uint32_t block = 0; block < 4; ++block) pool.start(block, 4);
    std::array<std::uint32_t, TestPool::kLanes> sent{};
    std::array<std::size_t, TestPool::kLanes> back{};
    while (back[0] < kQueries || back[1] < kQueries) {
      for (std::uint32_t lane = 0; lane < TestPool::kLanes; ++lane) {
        while (sent[lane] < kQueries && !pool.full(lane)) pool.submit(lane, 7 * sent[lane]++ + lane);
        back[lane] += pool.poll(lane);
      }
      std::this_thread::yield();
    }
    EXPECT_EQ(back[0] + back[1], 2 * kQueries);
  }
}

TEST(InlineAnswer, AQueryThatComesAloneNeedsNoOtherBlock) {
  TestPool pool(2, 1, true);
  pool.start(0, 2);
  for (std::uint32_t query = 0; query < 20; ++query) {
    const std::uint32_t lane = query % TestPool::kLanes;
    pool.await_reads(kQuietly);
    const std::uint64_t position = pool.submit(lane, query);
    while (!pool.back(lane, position) && pool.queued() == 0) std::this_thread::yield();
    ASSERT_EQ(pool.queued(), 0U);
    EXPECT_EQ(pool.poll(lane), 1U);
  }
}

TEST(InlineAnswer, QueriesThatComeTogetherAreQueued) {
  TestPool pool(2, 1, true);
  pool.held.released = true;
  pool.start(0, 2);
  pool.await_reads(kQuietly);
  pool.hold_tails();
  pool.submit(0, 1);
  const std::uint64_t second = pool.submit(0, 2);
  pool.held.tails_held = false;
  while (pool.queued() < 2 && !pool.back(0, second)) std::this_thread::yield();
  EXPECT_EQ(pool.queued(), 2U);
  EXPECT_FALSE(pool.back(0, 0));
  pool.start(1, 2);
  pool.await(0, second);
  EXPECT_EQ(pool.poll(0), 2U);
}

TEST(InlineAnswer, AQueryRightBehindAnotherIsQueued) {
  TestPool pool(2, 1, true);
  pool.held.released = true;
  pool.start(0, 2);
  pool.await_reads(kQuietly);
  pool.hold_tails();
  pool.submit(0, 1);
  pool.submit(1, 2);
  pool.held.tails_held = false;
  while (pool.queued() == 0 && (!pool.back(0, 0) || !pool.back(1, 0))) std::this_thread::yield();
  EXPECT_EQ(pool.queued(), 1U);
  EXPECT_NE(pool.back(0, 0), pool.back(1, 0)) << "the first is answered by block 0, the other waits for a worker";
  pool.start(1, 2);
  pool.await(0, 0);
  pool.await(1, 0);
  EXPECT_EQ(pool.poll(0) + pool.poll(1), 2U);
}

TEST(LoneQuery, IsAnsweredBeforeItsTailSaysThatItIsThere) {
  TestPool pool(4, 1, true);
  pool.start(0, 2);
  pool.let_it_watch(0);
  pool.hold_tails();
  CpuGroup::store_unit(pool.lone[0], {{7, 0, 0}, 3});
  pool.let_one_read_pass();                            // block 0 has read the unit
  CpuGroup::store_unit(pool.lone[0], {{8, 0, 0}, 4});  // right behind it
  pool.held.tails_held = false;
  pool.await(0, 3);
  pool.await_reads(kQuietly);  // the tail is behind the answered queries
  EXPECT_EQ(pool.submit(0, 7), 2U);
  EXPECT_EQ(pool.submit(0, 8), 3U);
  EXPECT_EQ(pool.poll(0), 2U);
  pool.answer_alone(0, 9);
  EXPECT_EQ(pool.queued(), 0U);
}

TEST(LoneQuery, OfAnotherLaneIsReadFromItsSlot) {
  TestPool pool(4, 1, true);
  pool.start(0, 2);
  pool.let_it_watch(0);
  pool.answer_alone(1, 9);
  pool.let_it_watch(1);
  EXPECT_EQ(pool.queued(), 0U);
}

TEST(LoneQuery, AUnitOfThatSequenceFromLongAgoDoesNotCount) {
  TestPool pool(4, 1, true, false);
  pool.start(0, 2);
  pool.answer_alone(0, 1);
  CpuGroup::store_unit(pool.lone[0], {{1000, 0, 0}, 3});  // as 2^32 queries before the third one
  pool.answer_alone(0, 2);
  while (pool.held.units_read == 0) std::this_thread::yield();
  pool.answer_alone(0, 7);
}

TEST(LoneQuery, OnlyWhatComesAloneIsWrittenTwice) {
  TestPool pool(4, 1, true);
  pool.submit(1, 5);
  EXPECT_EQ(pool.lone[1].sequence, 1U);
  EXPECT_EQ(pool.lone[1].data[0], 5U);
  pool.submit(1, 6);
  EXPECT_EQ(pool.lone[1].sequence, 1U);
  EXPECT_EQ(pool.lone[0].sequence, 0U);
}

TEST(LoneQuery, IsThereOnceAllOfItsUnitsAre) {
  const std::array<SealedUnit, 4> units{{{}, {}, {{1, 2, 3}, 5}, {{4, 5, 6}, 4}}};
  DispatchView view;
  view.lone = units.data();
  view.lone_stride = 2;
  view.query_bytes = 20;
  const detail::LoneQuery<CpuGroup> query(CpuGroup(0, 1), view);
  bool called = false;
  const auto found = [&](std::uint32_t sequence) { return query.read(1, sequence, [&] { called = true; }); };
  EXPECT_FALSE(found(5).all);
  EXPECT_TRUE(found(5).any);
  EXPECT_FALSE(found(6).any);
  EXPECT_TRUE(called);
  auto whole = units;
  whole[3].sequence = 5;
  view.lone = whole.data();
  EXPECT_TRUE(found(5).all);
  std::array<std::uint32_t, 6> read{};
  std::memcpy(read.data(), CpuGroup::shared<detail::Stage>().bytes, sizeof(read));
  EXPECT_EQ(read, (std::array<std::uint32_t, 6>{1, 2, 3, 4, 5, 6}));
}

}  // namespace
}  // namespace headrace::serve
