#include <fmt/format.h>

#include "headrace/base/error.hpp"
#include "headrace/grid/simulation.hpp"

namespace headrace::grid {

std::string_view to_string(Push push) noexcept {
  switch (push) {
    case Push::automatic: return "automatic";
    case Push::store: return "store";
    case Push::copy: return "copy";
    case Push::host: return "host";
  }
  return "?";
}

Push parse_push(std::string_view text) {
  for (const Push push : {Push::automatic, Push::store, Push::copy, Push::host}) {
    if (text == to_string(push)) return push;
  }
  throw UsageError(fmt::format("a push is automatic, store, copy or host, not '{}'", text));
}

}  // namespace headrace::grid
