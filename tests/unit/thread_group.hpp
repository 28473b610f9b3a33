#pragma once

#include <gtest/gtest.h>

#include <barrier>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

/// A block of several host threads, so that tests run code written for a Group as CUDA does.
namespace headrace::test_groups {

class ThreadGroup {
 public:
  static constexpr std::uint32_t kLanes = 1;

  /// State shared by the threads of the block.
  struct Block {
    explicit Block(std::uint32_t threads) : barrier(threads), values(threads) {}
    std::barrier<> barrier;
    std::vector<std::uint64_t> values;
    alignas(64) std::byte memory[1 << 15];
  };

  ThreadGroup(Block& block, std::uint32_t rank) : block_(&block), rank_(rank) {}

  [[nodiscard]] std::uint32_t rank() const { return rank_; }
  [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(block_->values.size()); }
  [[nodiscard]] static std::uint32_t block() { return 0; }
  [[nodiscard]] static std::uint32_t block_count() { return 1; }
  void sync() const { block_->barrier.arrive_and_wait(); }

  template <class T>
  [[nodiscard]] T& shared() const {
    static_assert(sizeof(T) <= sizeof(Block::memory));
    return *reinterpret_cast<T*>(block_->memory);
  }

  template <class T>
  [[nodiscard]] T sum_before(T value, T& total) const {
    block_->values[rank_] = value;
    sync();
    T before{};
    total = T{};
    for (std::uint32_t i = 0; i < size(); ++i) {
      if (i < rank_) before += static_cast<T>(block_->values[i]);
      total += static_cast<T>(block_->values[i]);
    }
    sync();
    return before;
  }

  template <class T>
  [[nodiscard]] T sum(T value) const {
    T total;
    static_cast<void>(sum_before(value, total));
    return total;
  }

 private:
  Block* block_;
  std::uint32_t rank_;
};

/// Runs `body(group)` in every thread of a block.
template <class Body>
void run_block(std::uint32_t threads, Body body) {
  ThreadGroup::Block block(threads);
  std::vector<std::jthread> running;
  for (std::uint32_t rank = 0; rank < threads; ++rank) {
    running.emplace_back([&block, &body, rank] { body(ThreadGroup(block, rank)); });
  }
}

}  // namespace headrace::test_groups
