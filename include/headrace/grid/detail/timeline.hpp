#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "headrace/base/detail/clock.hpp"

namespace headrace::grid {

/// The work of a part between two exchanges. The body and the interior run on one stream, the rest on another.
enum class Work : std::uint8_t {
  body,      ///< All steps, except the part of the last that can be split into border and interior.
  border,    ///< The last step in cells that neighbours need, including packing.
  push,      ///< Copies of border cells to neighbours in this process.
  messages,  ///< Messages to and from other ranks.
  receive,   ///< Copies of received cells into the ghosts.
  interior,  ///< The rest of the last step.
};

/// "body", "border", "push", "messages", "receive", "interior".
[[nodiscard]] std::string_view to_string(Work work) noexcept;

/// The time of a part's work, relative to the start of the first recorded cycle. Each device has its own clock.
struct WorkSpan {
  std::size_t part = 0;
  std::size_t cycle = 0;  ///< Index among the recorded cycles, from 0.
  Work work = Work::body;
  Duration begin{};
  Duration end{};
};

}  // namespace headrace::grid
