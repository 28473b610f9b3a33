#include "wire/shared_regions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "wire/request_error.hpp"

namespace headrace::wire {

namespace {

constexpr std::size_t kRegionsMax = 256;     // each keeps a file descriptor
constexpr std::size_t kRegionNameMax = 256;  // characters

/// Allows only characters that all descriptions of regions can represent.
bool is_region_name(std::string_view name) {
  const auto printable = [](char c) { return c >= ' ' && c <= '~'; };
  return !name.empty() && name.size() <= kRegionNameMax && std::ranges::all_of(name, printable);
}

[[noreturn]] void no_region(std::string_view name) {
  throw RequestError(kNotFound, fmt::format("there is no region \"{}\" of shared memory: register it first", name));
}

}  // namespace

void SharedRegions::require_enabled() const {
  if (enabled_) return;
  throw RequestError(kNotImplemented,
                     "this server does not offer shared memory; start headrace serve with --shared-memory");
}

void SharedRegions::add(std::string name, std::string key, std::uint64_t offset, std::uint64_t bytes) {
  require_enabled();
  if (!is_region_name(name)) {
    refuse(fmt::format("the name of a region must have 1 to {} printable ASCII characters", kRegionNameMax));
  }
  const auto region = std::make_shared<const SharedRegion>(std::move(name), std::move(key), offset, bytes);
  const std::lock_guard locked(mutex_);
  if (regions_.contains(region->name())) {
    throw RequestError(kConflict, fmt::format("region \"{}\" is already registered", region->name()));
  }
  if (regions_.size() >= kRegionsMax) {
    throw RequestError(kTooManyRequests, fmt::format("{} regions are registered, which is the limit", kRegionsMax));
  }
  if (bytes > bytes_max_ - bytes_) {
    throw RequestError(
        kTooManyRequests,
        fmt::format("all regions together may have {} bytes, and {} are already registered", bytes_max_, bytes_));
  }
  regions_.emplace(region->name(), region);
  bytes_ += bytes;
}

void SharedRegions::remove(std::string_view name) {
  require_enabled();
  std::shared_ptr<const SharedRegion> last;  // closed without the lock
  const std::lock_guard locked(mutex_);
  const auto found = regions_.find(name);
  if (found == regions_.end()) return;
  last = std::move(found->second);
  bytes_ -= last->bytes();
  regions_.erase(found);
}

void SharedRegions::remove_all() {
  require_enabled();
  decltype(regions_) last;
  const std::lock_guard locked(mutex_);
  last.swap(regions_);
  bytes_ = 0;
}

std::vector<std::shared_ptr<const SharedRegion>> SharedRegions::list(std::string_view name) const {
  require_enabled();
  const std::lock_guard locked(mutex_);
  std::vector<std::shared_ptr<const SharedRegion>> found;
  for (const auto& [key, region] : regions_) {
    if (name.empty() || key == name) found.push_back(region);
  }
  if (found.empty() && !name.empty()) no_region(name);
  return found;
}

SharedRange SharedRegions::find(const NamedRange& named, std::string_view kind, std::string_view tensor) const {
  if (!named.any()) return {};
  if (!enabled_) {
    refuse("the parameter \"shared_memory_region\" belongs to an extension that this server does not offer");
  }
  if (!named.region || !named.bytes) {
    refuse(fmt::format("{} \"{}\" needs both \"shared_memory_region\" and \"shared_memory_byte_size\"", kind, tensor));
  }
  SharedRange range{.offset = named.offset.value_or(0), .bytes = *named.bytes};
  {
    const std::lock_guard locked(mutex_);
    const auto found = regions_.find(*named.region);
    if (found == regions_.end()) no_region(*named.region);
    range.region = found->second;
  }
  const std::uint64_t whole = range.region->bytes();
  if (range.offset > whole || range.bytes > whole - range.offset) {
    refuse(fmt::format("{} \"{}\" needs {} bytes from offset {} on in region \"{}\", which has {}", kind, tensor,
                       range.bytes, range.offset, *named.region, whole));
  }
  return range;
}

}  // namespace headrace::wire
