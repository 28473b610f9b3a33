#include "base/names.hpp"
#include "headrace/measure/links.hpp"

namespace headrace::measure {

namespace {

constexpr auto kPaths = names_of<LinkPath>("a link path", {{LinkPath::to_device, "to device"},
                                                           {LinkPath::from_device, "from device"},
                                                           {LinkPath::both_ways, "both ways"},
                                                           {LinkPath::within, "within"},
                                                           {LinkPath::from_peer, "from peer"},
                                                           {LinkPath::to_peer, "to peer"},
                                                           {LinkPath::both_peers, "both peers"}});
constexpr auto kLinkMemories = names_of<LinkMemory>("a kind of link memory", {{LinkMemory::pageable, "pageable"},
                                                                              {LinkMemory::registered, "registered"},
                                                                              {LinkMemory::pinned, "pinned"},
                                                                              {LinkMemory::mapped, "mapped"},
                                                                              {LinkMemory::managed, "managed"},
                                                                              {LinkMemory::span, "span"},
                                                                              {LinkMemory::device, "device"}});
constexpr auto kLinkMeans =
    names_of<LinkMeans>("a means of transfer", {{LinkMeans::engine, "engine"}, {LinkMeans::kernel, "kernel"}});

}  // namespace

std::string_view to_string(LinkPath path) noexcept { return kPaths.of(path); }
std::string_view to_string(LinkMemory memory) noexcept { return kLinkMemories.of(memory); }
std::string_view to_string(LinkMeans means) noexcept { return kLinkMeans.of(means); }

}  // namespace headrace::measure
