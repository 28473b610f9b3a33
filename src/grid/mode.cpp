#include <fmt/format.h>

#include "headrace/base/error.hpp"
#include "headrace/grid/simulation.hpp"

namespace headrace::grid {

std::string_view to_string(Mode mode) noexcept {
  switch (mode) {
    case Mode::streams: return "streams";
    case Mode::resident: return "resident";
  }
  return "?";
}

Mode parse_mode(std::string_view text) {
  for (const Mode mode : {Mode::streams, Mode::resident}) {
    if (text == to_string(mode)) return mode;
  }
  throw UsageError(fmt::format("a mode is streams or resident, not '{}'", text));
}

}  // namespace headrace::grid
