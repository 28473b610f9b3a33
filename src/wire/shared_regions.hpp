#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

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

/// The regions of shared memory that clients have registered: Triton's extension system_shared_memory. Any thread.
class SharedRegions {
 public:
  /// @param enabled    whether clients may register regions
  /// @param bytes_max  limit for all regions together
  SharedRegions(bool enabled, std::uint64_t bytes_max) noexcept : enabled_(enabled), bytes_max_(bytes_max) {}

  [[nodiscard]] bool enabled() const noexcept { return enabled_; }

  // All methods below throw RequestError if the server does not offer the extension.

  /// Registers a region. Throws RequestError if its name is in use, its memory cannot be used, or a limit is reached.
  void add(std::string name, std::string key, std::uint64_t offset, std::uint64_t bytes);
  /// Unregisters the region of that name, if any. Requests that use it keep it.
  void remove(std::string_view name);
  void remove_all();
  /// The region of that name, or all regions, sorted by name, if `name` is empty. Throws RequestError for an unknown
  /// name.
  [[nodiscard]] std::vector<std::shared_ptr<const SharedRegion>> list(std::string_view name) const;
  /// The part of a region that the parameters of a tensor name; without a region if they name none. Throws RequestError
  /// if the part is not within a registered region, or if the extension is not offered.
  /// @param kind, tensor  for messages: "input" or "output", and the tensor's name
  [[nodiscard]] SharedRange find(const NamedRange& named, std::string_view kind, std::string_view tensor) const;

 private:
  void require_enabled() const;

  const bool enabled_;
  const std::uint64_t bytes_max_;
  mutable std::mutex mutex_;  ///< Guards the following members. Not held while regions are opened, read or closed.
  std::map<std::string, std::shared_ptr<const SharedRegion>, std::less<>> regions_;
  std::uint64_t bytes_ = 0;  ///< Bytes of all regions.
};

}  // namespace headrace::wire
