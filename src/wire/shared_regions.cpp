#include "wire/shared_regions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <utility>

#include "headrace/device/detail/foreign_memory.hpp"
#include "wire/device_region.hpp"
#include "wire/posix_region.hpp"
#include "wire/request_error.hpp"

namespace headrace::wire {

namespace {

constexpr std::size_t kRegionsMax = 256;     // each keeps a file descriptor or a stream of a device
constexpr std::size_t kRegionNameMax = 256;  // characters

/// Allows only characters that all descriptions of regions can represent.
void require_region_name(std::string_view name) {
  const auto printable = [](char c) { return c >= ' ' && c <= '~'; };
  if (!name.empty() && name.size() <= kRegionNameMax && std::ranges::all_of(name, printable)) return;
  refuse(fmt::format("the name of a region must have 1 to {} printable ASCII characters", kRegionNameMax));
}

[[noreturn]] void no_region(std::string_view name) {
  throw RequestError(kNotFound, fmt::format("there is no region \"{}\" of shared memory: register it first", name));
}

}  // namespace

void SharedRegions::require(RegionKind kind) const {
  if (offers(kind)) return;
  throw RequestError(
      kNotImplemented,
      kind == RegionKind::system
          ? "this server does not offer shared memory; start headrace serve with --shared-memory"
          : "this server does not offer CUDA shared memory; start headrace serve with --cuda-shared-memory");
}

void SharedRegions::add_system(std::string name, std::string key, std::uint64_t offset, std::uint64_t bytes) {
  require(RegionKind::system);
  require_region_name(name);
  insert(std::make_shared<const PosixRegion>(std::move(name), std::move(key), offset, bytes));
}

void SharedRegions::add_cuda(std::string name, std::span<const std::byte> handle, std::int64_t device,
                             std::uint64_t bytes) {
  require(RegionKind::cuda);
  require_region_name(name);
  if (handle.size() != kMemoryHandleBytes) {
    refuse(fmt::format("region \"{}\": a raw handle has {} bytes, but this one has {}", name, kMemoryHandleBytes,
                       handle.size()));
  }
  if (device < 0 || static_cast<std::uint64_t>(device) >= devices_.size()) {
    refuse(fmt::format("region \"{}\": this server has no CUDA device {}; its devices are 0 to {}", name, device,
                       devices_.size() - 1));
  }
  insert(
      std::make_shared<const DeviceRegion>(std::move(name), devices_[static_cast<std::size_t>(device)], handle, bytes));
}

void SharedRegions::insert(std::shared_ptr<const SharedRegion> region) {
  const std::uint64_t bytes = region->bytes();
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
  std::string name = region->name();
  regions_.emplace(std::move(name), std::move(region));
  bytes_ += bytes;
}

void SharedRegions::remove(RegionKind kind, std::string_view name) {
  require(kind);
  std::shared_ptr<const SharedRegion> last;  // closed without the lock
  const std::lock_guard locked(mutex_);
  const auto found = regions_.find(name);
  if (found == regions_.end() || found->second->kind() != kind) return;
  last = std::move(found->second);
  bytes_ -= last->bytes();
  regions_.erase(found);
}

void SharedRegions::remove_all(RegionKind kind) {
  require(kind);
  decltype(regions_) last;  // closed without the lock
  const std::lock_guard locked(mutex_);
  for (auto one = regions_.begin(); one != regions_.end();) {
    const auto next = std::next(one);
    if (one->second->kind() == kind) {
      bytes_ -= one->second->bytes();
      last.insert(regions_.extract(one));
    }
    one = next;
  }
}

std::vector<std::shared_ptr<const SharedRegion>> SharedRegions::list(RegionKind kind, std::string_view name) const {
  require(kind);
  const std::lock_guard locked(mutex_);
  std::vector<std::shared_ptr<const SharedRegion>> found;
  for (const auto& [key, region] : regions_) {
    if (region->kind() == kind && (name.empty() || key == name)) found.push_back(region);
  }
  if (found.empty() && !name.empty()) no_region(name);
  return found;
}

SharedRange SharedRegions::find(const NamedRange& named, std::string_view of, std::string_view tensor) const {
  if (!named.any()) return {};
  if (!offers(RegionKind::system) && !offers(RegionKind::cuda)) {
    refuse("the parameter \"shared_memory_region\" belongs to an extension that this server does not offer");
  }
  if (!named.region || !named.bytes) {
    refuse(fmt::format("{} \"{}\" needs both \"shared_memory_region\" and \"shared_memory_byte_size\"", of, tensor));
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
    refuse(fmt::format("{} \"{}\" needs {} bytes from offset {} on in region \"{}\", which has {}", of, tensor,
                       range.bytes, range.offset, *named.region, whole));
  }
  return range;
}

}  // namespace headrace::wire
