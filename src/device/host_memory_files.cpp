#include "device/host_memory_files.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/base/detail/bytes.hpp"

namespace headrace::detail {

namespace {

namespace fs = std::filesystem;

/// Names of a control group's files, and of the fields in memory.stat for pages that the kernel can reclaim.
struct GroupFiles {
  const char* limit;
  const char* used;
  std::array<std::string_view, 2> droppable;
};

constexpr std::array kVersions{
    GroupFiles{"memory.max", "memory.current", {"inactive_file", "active_file"}},
    GroupFiles{"memory.limit_in_bytes", "memory.usage_in_bytes", {"total_inactive_file", "total_active_file"}}};

/// Calls `take(name, number)` for every line of a file that begins with a name, an optional colon, and a number.
template <class Take>
void for_each_field(const fs::path& path, Take take) {
  std::ifstream file(path);
  for (std::string name; file >> name;) {
    std::size_t number = 0;
    if (file >> number) {
      if (name.ends_with(':')) name.pop_back();
      take(std::string_view(name), number);
    } else if (file.eof()) {
      break;
    }
    file.clear();
    file.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
}

/// The number at the start of a file; none for "max".
std::optional<std::size_t> number_in(const fs::path& path) {
  std::ifstream file(path);
  std::size_t number = 0;
  if (file >> number) return number;
  return std::nullopt;
}

/// The folders of the groups that count this process's memory, and of their ancestors. In a container, the names in
/// /proc do not exist as folders, but the root of the groups does.
std::vector<fs::path> groups_of_process(const fs::path& proc, const fs::path& groups) {
  std::vector<fs::path> found;
  std::ifstream file(proc / "self/cgroup");
  for (std::string line; std::getline(file, line);) {  // such as "4:memory:/a/b" or, of version 2, "0::/a/b"
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = ',' + line.substr(first + 1, second - first - 1) + ',';
    const bool unified = controllers == ",,";
    if (!unified && controllers.find(",memory,") == std::string::npos) continue;
    fs::path folder = unified ? groups : groups / "memory";
    found.push_back(folder);
    for (const fs::path& name : fs::path(line.substr(second + 1)).relative_path()) {
      folder /= name;
      found.push_back(folder);
    }
  }
  return found;
}

/// The limit of a group and what is left of it; none if the group has no limit.
std::optional<MemoryInfo> memory_of_group(const fs::path& group) {
  for (const GroupFiles& files : kVersions) {
    const auto limit = number_in(group / files.limit);
    const auto used = number_in(group / files.used);
    if (!limit || !used) continue;
    std::size_t held = *used;  // minus what the kernel can reclaim
    for_each_field(group / "memory.stat", [&](std::string_view name, std::size_t bytes) {
      if (std::ranges::find(files.droppable, name) != files.droppable.end()) held -= std::min(held, bytes);
    });
    return MemoryInfo{.free_bytes = *limit - std::min(*limit, held), .total_bytes = *limit};
  }
  return std::nullopt;
}

}  // namespace

MemoryInfo host_memory_of(const fs::path& proc, const fs::path& groups) {
  MemoryInfo info{.free_bytes = kNoLimit, .total_bytes = kNoLimit};
  for_each_field(proc / "meminfo", [&](std::string_view name, std::size_t kib) {
    if (name == "MemTotal") info.total_bytes = kib * kKiB;
    if (name == "MemAvailable") info.free_bytes = kib * kKiB;
  });
  for (const fs::path& group : groups_of_process(proc, groups)) {
    if (const auto left = memory_of_group(group)) {
      info.free_bytes = std::min(info.free_bytes, left->free_bytes);
      info.total_bytes = std::min(info.total_bytes, left->total_bytes);
    }
  }
  info.free_bytes = std::min(info.free_bytes, info.total_bytes);
  return info;
}

}  // namespace headrace::detail
