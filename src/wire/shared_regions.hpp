#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "headrace/device/device.hpp"
#include "wire/shared_region.hpp"

namespace headrace::wire {

/// The shared memory that the parameters of a tensor name.
struct NamedRange {
  std::optional<std::string> region = {};
  std::optional<std::uint64_t> offset = {};
  std::optional<std::uint64_t> bytes = {};

  /// Whether the parameters name any.
  [[nodiscard]] bool any() const noexcept { return region || offset || bytes; }
};

/// The regions of memory that clients have registered: Triton's extensions system_shared_memory and cuda_shared_memory,
/// whose regions share one set of names and one limit. Any thread.
class SharedRegions {
 public:
  /// @param system     whether clients may register POSIX shared memory
  /// @param devices    the devices, by ordinal, whose memory clients may register; none turns that off
  /// @param bytes_max  limit for all regions together
  SharedRegions(bool system, std::vector<Device> devices, std::uint64_t bytes_max) noexcept
      : system_(system), devices_(std::move(devices)), bytes_max_(bytes_max) {}

  /// Whether clients may register regions of a kind.
  [[nodiscard]] bool offers(RegionKind kind) const noexcept {
    return kind == RegionKind::system ? system_ : !devices_.empty();
  }
  /// Throws RequestError, which names the option, if clients may not.
  void require(RegionKind kind) const;

  // All methods below throw RequestError if the server does not offer the kind, and see only regions of that kind.

  /// Registers POSIX shared memory. Throws RequestError if its name is in use, its memory cannot be used, or a limit is
  /// reached.
  void add_system(std::string name, std::string key, std::uint64_t offset, std::uint64_t bytes);
  /// Registers memory of a CUDA device. Throws RequestError in the same cases.
  void add_cuda(std::string name, std::span<const std::byte> handle, std::int64_t device, std::uint64_t bytes);
  /// Unregisters the region of that name, if any. Requests that use it keep it.
  void remove(RegionKind kind, std::string_view name);
  void remove_all(RegionKind kind);
  /// The region of that name, or all regions, sorted by name, if `name` is empty. Throws RequestError for an unknown
  /// name.
  [[nodiscard]] std::vector<std::shared_ptr<const SharedRegion>> list(RegionKind kind, std::string_view name) const;

  /// The part of a region of either kind that the parameters of a tensor name; without a region if they name none.
  /// Throws RequestError if the part is not within a registered region, or if the server offers no regions.
  /// @param of, tensor  for messages: "input" or "output", and the tensor's name
  [[nodiscard]] SharedRange find(const NamedRange& named, std::string_view of, std::string_view tensor) const;

 private:
  void insert(std::shared_ptr<const SharedRegion> region);

  const bool system_;
  const std::vector<Device> devices_;
  const std::uint64_t bytes_max_;
  mutable std::mutex mutex_;  ///< Guards the following members. Not held while regions are opened, read or closed.
  std::map<std::string, std::shared_ptr<const SharedRegion>, std::less<>> regions_;
  std::uint64_t bytes_ = 0;  ///< Bytes of all regions.
};

}  // namespace headrace::wire
