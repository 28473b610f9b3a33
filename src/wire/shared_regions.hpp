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

/// What the parameters of a tensor say about shared memory.
struct NamedRange {
  std::optional<std::string> region = {};
  std::optional<std::uint64_t> offset = {};
  std::optional<std::uint64_t> bytes = {};

  /// Whether they say anything about it.
  [[nodiscard]] bool any() const noexcept { return region || offset || bytes; }
};

/// The regions of shared memory that clients have registered: Triton's extension system_shared_memory. Any thread.
class SharedRegions {
 public:
  /// @param enabled    whether clients may register any
  /// @param bytes_max  of all regions together
  SharedRegions(bool enabled, std::uint64_t bytes_max) noexcept : enabled_(enabled), bytes_max_(bytes_max) {}

  [[nodiscard]] bool enabled() const noexcept { return enabled_; }

  // All methods below throw RequestError where the server does not offer the extension.

  /// Registers a region. Throws RequestError where its name is taken, its memory cannot be used, or limits are reached.
  void add(std::string name, std::string key, std::uint64_t offset, std::uint64_t bytes);
  /// Forgets the region of a name, if there is one; requests that use it keep it.
  void remove(std::string_view name);
  void remove_all();
  /// The region of a name, or all of them, by name, where `name` is empty. Throws RequestError for a name that is none.
  [[nodiscard]] std::vector<std::shared_ptr<const SharedRegion>> list(std::string_view name) const;
  /// The part of a region that the parameters of a tensor name: with no region where they say nothing of any. Throws
  /// RequestError where that is not in a region, whether the extension is offered or not.
  /// @param kind, tensor  for the message: "input" or "output", and its name
  [[nodiscard]] SharedRange find(const NamedRange& named, std::string_view kind, std::string_view tensor) const;

 private:
  void require_enabled() const;

  const bool enabled_;
  const std::uint64_t bytes_max_;
  mutable std::mutex mutex_;  ///< Guards what follows. Held while nothing is opened, read or closed.
  std::map<std::string, std::shared_ptr<const SharedRegion>, std::less<>> regions_;
  std::uint64_t bytes_ = 0;  ///< The sum of their sizes.
};

}  // namespace headrace::wire
