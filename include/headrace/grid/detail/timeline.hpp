#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "headrace/base/detail/clock.hpp"

namespace headrace::grid {

/// What a part does from one exchange to the next. The body and the interior are on one stream, the others on another.
enum class Work : std::uint8_t {
  body,      ///< All steps but what of the last can be split into border and interior.
  border,    ///< The last step where neighbours need it; packing included.
  push,      ///< Border cells on their way to neighbours in this process.
  messages,  ///< Messages on their way to and from other ranks.
  receive,   ///< What has come, on its way into the ghosts.
  interior,  ///< The rest of the last step.
};

/// "body", "border", "push", "messages", "receive", "interior".
[[nodiscard]] std::string_view to_string(Work work) noexcept;

/// When a part did something, from where it began the first cycle that was recorded. Each device has its own clock.
struct WorkSpan {
  std::size_t part = 0;
  std::size_t cycle = 0;  ///< The number among the cycles recorded, from 0.
  Work work = Work::body;
  Duration begin{};
  Duration end{};
};

}  // namespace headrace::grid
