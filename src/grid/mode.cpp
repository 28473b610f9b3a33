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

std::string_view to_string(Passes passes) noexcept {
  switch (passes) {
    case Passes::automatic: return "automatic";
    case Passes::never: return "never";
    case Passes::always: return "always";
  }
  return "?";
}

Passes parse_passes(std::string_view text) {
  for (const Passes passes : {Passes::automatic, Passes::never, Passes::always}) {
    if (text == to_string(passes)) return passes;
  }
  throw UsageError(fmt::format("passes over memory are automatic, never or always, not '{}'", text));
}

}  // namespace headrace::grid
