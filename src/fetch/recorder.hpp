#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <vector>

#include "headrace/fetch/detail/timeline.hpp"

namespace headrace::fetch {

/// Records the steps of a fetch's threads. Each record has a slot of its own, so that no thread waits.
class Recorder {
 public:
  /// @param most  records to keep; further ones are only counted.
  explicit Recorder(std::size_t most) : spans_(most) {}

  void note(const StepSpan& span) noexcept {
    const std::size_t at = count_.fetch_add(1, std::memory_order_relaxed);
    if (at < spans_.size()) spans_[at] = span;
  }

  /// Call it only after the threads have ended.
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

/// One thread's access to the recorder.
struct Notes {
  Recorder* recorder = nullptr;  ///< Null: nothing is recorded.
  std::uint32_t thread = 0;
};

}  // namespace headrace::fetch
