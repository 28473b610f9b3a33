#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <vector>

#include "headrace/fetch/detail/timeline.hpp"

namespace headrace::fetch {

/// Notes of the threads of a fetch. Each note has a place of its own: nobody waits.
class Recorder {
 public:
  /// @param most  notes that are kept; those after them are counted.
  explicit Recorder(std::size_t most) : spans_(most) {}

  void note(const StepSpan& span) noexcept {
    const std::size_t at = count_.fetch_add(1, std::memory_order_relaxed);
    if (at < spans_.size()) spans_[at] = span;
  }

  /// Once the threads have ended.
  [[nodiscard]] FetchTimeline timeline() const {
    const std::size_t count = count_.load(std::memory_order_relaxed);
    const std::size_t kept = std::min(count, spans_.size());
    FetchTimeline made{.spans = {spans_.begin(), spans_.begin() + static_cast<std::ptrdiff_t>(kept)},
                       .dropped = count - kept};
    std::ranges::stable_sort(made.spans, {}, &StepSpan::begin);
    return made;
  }

 private:
  std::vector<StepSpan> spans_;
  std::atomic<std::size_t> count_{0};
};

/// The notes of one thread.
struct Notes {
  Recorder* recorder = nullptr;  ///< Null: none are taken.
  std::uint32_t thread = 0;
};

}  // namespace headrace::fetch
