#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "headrace/base/detail/clock.hpp"
#include "headrace/fetch/source.hpp"

namespace headrace::fetch {

/// What happens to a chunk on its way to the device.
enum class Step : std::uint8_t {
  read,      ///< Its bytes come into the page cache.
  decode,    ///< Its values are made in host memory.
  transfer,  ///< They are copied to the device, together with the others of the same submission.
};

/// "read", "decode", "transfer".
[[nodiscard]] std::string_view to_string(Step step) noexcept;

/// When a thread of a fetch did something for a chunk, by SteadyClock. A transfer is timed on the stream of that
/// thread, from the first copy of its submission to the last: other threads' transfers may share the link with it.
struct StepSpan {
  Chunk chunk;
  std::uint32_t thread = 0;
  Step step = Step::read;
  Time begin{};
  Time end{};
};

struct FetchTimeline {
  std::vector<StepSpan> spans;  ///< By when they began.
  std::size_t dropped = 0;      ///< Spans that came after as many as were asked for.
};

}  // namespace headrace::fetch
