#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "headrace/serve/tuner.hpp"

/// Plans that the tuner found, kept in a file of the user's. The file is a help, never a need: one that cannot be read,
/// is damaged or comes from another version counts as empty, and one that cannot be written is left.
namespace headrace::serve::detail {

struct CachedPlan {
  Plan plan;
  std::uint32_t generators = 1;
  double per_second = 0;
  Duration p99{};
};

/// What a plan depends on: version, device, processors, operator with its sizes and shape, bound, and what the search
/// was limited to.
[[nodiscard]] std::string cache_key(Device device, const Operator& op, const TunerOptions& options);

[[nodiscard]] std::optional<CachedPlan> read_cached(const std::filesystem::path& file, const std::string& key) noexcept;
/// Replaces the file as a whole, so that a reader sees the old one or the new one. Whether it could.
bool write_cached(const std::filesystem::path& file, const std::string& key, const CachedPlan& plan) noexcept;

}  // namespace headrace::serve::detail
