#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "headrace/base/detail/clock.hpp"
#include "headrace/fetch/source.hpp"

namespace headrace::fetch {

/// The steps of a chunk on its way to the device.
enum class Step : std::uint8_t {
  read,      ///< Reading its bytes into the page cache.
  decode,    ///< Making its values in host memory.
  transfer,  ///< Copying its values to the device, together with other chunks of the same submission.
};

/// "read", "decode", "transfer".
[[nodiscard]] std::string_view to_string(Step step) noexcept;

/// One step of a fetch's thread for a chunk, in SteadyClock time. A transfer is timed on the thread's stream, from the
/// first to the last copy of its submission; transfers of other threads may share the link during that time.
struct StepSpan {
  Chunk chunk;
  std::uint32_t thread = 0;
  Step step = Step::read;
  Time begin{};
  Time end{};
};

struct FetchTimeline {
  std::vector<StepSpan> spans;  ///< Ordered by start.
  std::size_t dropped = 0;      ///< Spans beyond the requested number.
};

}  // namespace headrace::fetch
