#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "headrace/device/buffer.hpp"
#include "headrace/serve/detail/direct_lane.hpp"
#include "headrace/serve/operator.hpp"
#include "headrace/serve/plan.hpp"

namespace headrace::serve::detail {

/// The host memory of all direct lanes of an engine, with the layout of DispatchView. Initially zero.
class DirectMemory {
 public:
  DirectMemory(Device device, const Plan& plan, const Operator& op);

  /// The memory that lane `index` writes and reads.
  [[nodiscard]] DirectLane::Memory lane(std::uint32_t index) const noexcept;
  /// The host half of the view; see DispatchView.
  [[nodiscard]] const DispatchView& view() const noexcept { return view_; }
  [[nodiscard]] std::uint32_t* stop_word() const noexcept;
  [[nodiscard]] std::uint32_t heartbeat() const noexcept;
  /// Resets the stop word and the heartbeat to 0 for another launch. No kernel may use them meanwhile.
  void clear_control() const noexcept;

 private:
  DispatchView view_;
  Buffer queries_;
  Buffer answers_;
  Buffer words_;  ///< Tails, the stop word, the heartbeat; then the done words, if answers are not sealed.
  Buffer stamps_;
  Buffer lone_;
  bool answers_itself_;
};

}  // namespace headrace::serve::detail
