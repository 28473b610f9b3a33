#include "headrace/device/detail/copy_route.hpp"

#include "base/names.hpp"

namespace headrace {

namespace {

constexpr auto kRoutes = names_of<CopyRoute>("a copy route", {{CopyRoute::automatic, "automatic"},
                                                              {CopyRoute::engine, "engine"},
                                                              {CopyRoute::batch_call, "batch_call"},
                                                              {CopyRoute::merged, "merged"},
                                                              {CopyRoute::gather, "gather"}});

}  // namespace

std::string_view to_string(CopyRoute route) noexcept { return kRoutes.of(route); }
CopyRoute parse_copy_route(std::string_view text) { return kRoutes.parse(text); }

}  // namespace headrace
