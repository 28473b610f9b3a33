#include "headrace/device/copy_route.hpp"

#include <fmt/format.h>

#include <array>

#include "headrace/base/error.hpp"

namespace headrace {

namespace {

struct RouteName {
  CopyRoute route;
  std::string_view name;
};
constexpr std::array kRouteNames{
    RouteName{CopyRoute::automatic, "automatic"},   RouteName{CopyRoute::engine, "engine"},
    RouteName{CopyRoute::batch_call, "batch_call"}, RouteName{CopyRoute::merged, "merged"},
    RouteName{CopyRoute::gather, "gather"},
};

}  // namespace

std::string_view to_string(CopyRoute route) noexcept {
  for (const auto& entry : kRouteNames) {
    if (entry.route == route) return entry.name;
  }
  return "unknown";
}

CopyRoute parse_copy_route(std::string_view text) {
  std::string names;
  for (const auto& entry : kRouteNames) {
    if (entry.name == text) return entry.route;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", entry.name);
  }
  throw UsageError(fmt::format("'{}' is not a route of copies: {}", text, names));
}

}  // namespace headrace
