#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "headrace/grid/detail/ranks.hpp"

/// Ranks that are threads of one process, so that tests of multi-process code need no processes.
namespace headrace::testing {

class ThreadRanks final : public grid::Ranks {
 public:
  struct Post {
    using Key = std::tuple<int, int, int>;  ///< Sender, receiver, tag.
    std::mutex mutex;
    std::condition_variable changed;
    std::map<Key, std::deque<std::vector<std::byte>>> messages;
    std::set<int> left;
    std::optional<std::string> failure;
  };

  ThreadRanks(std::shared_ptr<Post> post, int rank, int count) : post_(std::move(post)), rank_(rank), count_(count) {}
  ThreadRanks(const ThreadRanks&) = delete;
  ThreadRanks& operator=(const ThreadRanks&) = delete;
  /// Leaves the group: messages that this rank has not sent by now never arrive.
  ~ThreadRanks() override {
    const std::lock_guard lock(post_->mutex);
    post_->left.insert(rank_);
    post_->changed.notify_all();
  }

  [[nodiscard]] int rank() const noexcept override { return rank_; }
  [[nodiscard]] int count() const noexcept override { return count_; }
  [[nodiscard]] int rank_on_machine() const noexcept override { return rank_; }
  [[nodiscard]] bool takes_device_memory() const noexcept override { return false; }

  [[nodiscard]] Status exchange(std::span<const grid::RankMessage> sends,
                                std::span<const grid::RankMessage> receives) noexcept override {
    std::unique_lock lock(post_->mutex);
    for (const grid::RankMessage& sent : sends) {
      post_->messages[{rank_, sent.rank, sent.tag}].emplace_back(sent.data, sent.data + sent.bytes);
    }
    post_->changed.notify_all();
    for (const grid::RankMessage& received : receives) {
      auto& queue = post_->messages[{received.rank, rank_, received.tag}];
      post_->changed.wait(lock,
                          [&] { return !queue.empty() || post_->failure || post_->left.contains(received.rank); });
      if (queue.empty()) {
        if (!post_->failure) post_->failure = "rank " + std::to_string(received.rank) + " has left";
        post_->changed.notify_all();
        return Errc::cancelled;
      }
      if (queue.front().size() != received.bytes) return Errc::invalid_argument;
      std::ranges::copy(queue.front(), received.data);
      queue.pop_front();
    }
    return {};
  }

  void fail(std::string_view why) noexcept override {
    const std::lock_guard lock(post_->mutex);
    if (!post_->failure) post_->failure = "rank " + std::to_string(rank_) + ": " + std::string(why);
    post_->changed.notify_all();
  }

  [[nodiscard]] std::optional<std::string> failure() const override {
    const std::lock_guard lock(post_->mutex);
    return post_->failure;
  }

 private:
  std::shared_ptr<Post> post_;
  const int rank_;
  const int count_;
};

/// Runs `job(ranks)` in one thread for each of `count` ranks and rethrows the first exception.
inline void on_ranks(int count, const std::function<void(const std::shared_ptr<grid::Ranks>&)>& job) {
  const auto post = std::make_shared<ThreadRanks::Post>();
  std::vector<std::exception_ptr> thrown(static_cast<std::size_t>(count));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < count; ++rank) {
    threads.emplace_back([&, rank] {
      const auto ranks = std::make_shared<ThreadRanks>(post, rank, count);
      try {
        job(ranks);
      } catch (const std::exception& error) {
        thrown[static_cast<std::size_t>(rank)] = std::current_exception();
        ranks->fail(error.what());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& one : thrown) {
    if (one) std::rethrow_exception(one);
  }
}

}  // namespace headrace::testing
