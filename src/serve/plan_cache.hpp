#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "headrace/serve/tuner.hpp"

/// Plans that the tuner found, kept in a file of the user. The file is optional: one that is unreadable, damaged or
/// from another version counts as empty, and one that cannot be written is left as it is.
namespace headrace::serve::detail {

struct CachedPlan {
  Plan plan;
  std::uint32_t generators = 1;
  double per_second = 0;
  Duration p99{};
};

/// Everything that a plan depends on: version, device, processors, operator with its sizes and shape, bound, and the
/// limits of the search.
[[nodiscard]] std::string cache_key(Device device, const Operator& op, const TunerOptions& options);

[[nodiscard]] std::optional<CachedPlan> read_cached(const std::filesystem::path& file, const std::string& key) noexcept;
/// Replaces the file as a whole, so that a reader sees either the old or the new one. Returns whether it succeeded.
bool write_cached(const std::filesystem::path& file, const std::string& key, const CachedPlan& plan) noexcept;

}  // namespace headrace::serve::detail
