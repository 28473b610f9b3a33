#include <array>

#include "headrace/measure/links.hpp"

namespace headrace::measure {

std::string_view to_string(LinkPath path) noexcept {
  constexpr std::array<std::string_view, 7> kNames{"to device", "from device", "both ways", "within",
                                                   "from peer", "to peer",     "both peers"};
  return kNames[static_cast<std::size_t>(path)];
}

std::string_view to_string(LinkMemory memory) noexcept {
  constexpr std::array<std::string_view, 7> kNames{"pageable", "registered", "pinned", "mapped",
                                                   "managed",  "span",       "device"};
  return kNames[static_cast<std::size_t>(memory)];
}

std::string_view to_string(LinkMeans means) noexcept { return means == LinkMeans::engine ? "engine" : "kernel"; }

}  // namespace headrace::measure
