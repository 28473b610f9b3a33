#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "base/thread_budget.hpp"
#include "wire/inference.hpp"

namespace headrace::wire {

/// One thread's part of the memory of requests, and ended inferences whose memory new ones reuse.
class InferencePool {
 public:
  /// @param spare_max  see ThreadBudget
  InferencePool(Budget& whole, std::size_t spare_max) : budget_(whole, spare_max) { spare_.reserve(kSpareMost); }

  [[nodiscard]] ThreadBudget& budget() noexcept { return budget_; }
  [[nodiscard]] const ThreadBudget& budget() const noexcept { return budget_; }

  /// An inference without queries. The pool must outlive it.
  [[nodiscard]] std::shared_ptr<Inference> take() {
    std::unique_ptr<Inference> one;
    if (spare_.empty()) {
      one = std::make_unique<Inference>(budget_);
    } else {
      one = std::move(spare_.back());
      spare_.pop_back();
    }
    return {one.release(), [this](Inference* ended) { give(std::unique_ptr<Inference>(ended)); }};
  }

 private:
  static constexpr std::size_t kSpareMost = 256;
  static constexpr std::size_t kSpareBytes = 4 << 10;  // most bytes of queries and answers that a spare inference keeps

  void give(std::unique_ptr<Inference> ended) noexcept {
    if (spare_.size() == kSpareMost || ended->queries.capacity() + ended->answers.capacity() > kSpareBytes) return;
    ended->reset();
    spare_.push_back(std::move(ended));  // room is reserved
  }

  ThreadBudget budget_;
  std::vector<std::unique_ptr<Inference>> spare_;
};

}  // namespace headrace::wire
