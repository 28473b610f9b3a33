#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <vector>

#include "headrace/device/stream.hpp"
#include "headrace/grid/detail/timeline.hpp"

namespace headrace::grid {

/// Records on the streams of a part when each kind of work begins and ends. It never waits: times are read at the end.
class Recorder {
 public:
  /// Points in a cycle. Work lies between two of them on one stream.
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

  /// Throws DeviceError if the device cannot create events.
  Recorder(Device device, std::size_t cycles);

  /// Moves on to the next cycle. Moments after the last recorded cycle are ignored.
  void next_cycle() noexcept { ++cycle_; }
  [[nodiscard]] Status mark(StreamRef stream, Moment moment) noexcept;
  /// The recorded spans of a part, in time order on each stream. Call it once all work is done.
  [[nodiscard]] std::vector<WorkSpan> spans(std::size_t part) const;

 private:
  static constexpr std::size_t kMoments = receive_end + 1;
  std::vector<std::array<std::optional<Event>, kMoments>> cycles_;
  std::vector<std::array<bool, kMoments>> marked_;
  std::size_t cycle_ = static_cast<std::size_t>(-1);
};

}  // namespace headrace::grid
