#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <vector>

#include "headrace/device/stream.hpp"
#include "headrace/grid/detail/timeline.hpp"

namespace headrace::grid {

/// Notes on the streams of a part when it does what. Nobody waits for it: times are read once all is done.
class Recorder {
 public:
  /// Points of a cycle. Work lies between two of them on one stream.
  enum Moment : std::uint8_t {
    begin,
    body_end,
    interior_end,
    border_begin,
    border_end,
    push_begin,
    push_end,
    messages_begin,
    messages_end,
    receive_begin,
    receive_end,
  };

  /// Throws DeviceError when the device has no more events.
  Recorder(Device device, std::size_t cycles);

  /// From here on moments are of the next cycle. Those after the last are not noted.
  void next_cycle() noexcept { ++cycle_; }
  [[nodiscard]] Status mark(StreamRef stream, Moment moment) noexcept;
  /// Once all is done: what was noted of a part, in the order of time on each stream.
  [[nodiscard]] std::vector<WorkSpan> spans(std::size_t part) const;

 private:
  static constexpr std::size_t kMoments = receive_end + 1;
  std::vector<std::array<std::optional<Event>, kMoments>> cycles_;
  std::vector<std::array<bool, kMoments>> marked_;
  std::size_t cycle_ = static_cast<std::size_t>(-1);
};

}  // namespace headrace::grid
