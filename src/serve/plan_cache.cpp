#include "serve/plan_cache.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <span>
#include <sstream>
#include <string>
#include <system_error>
#include <thread>

#include "base/output_file.hpp"
#include "headrace/base/error.hpp"
#include "headrace/config.hpp"
#include "headrace/device/topology.hpp"
#include "serve/plan_json.hpp"

namespace headrace::serve {

namespace {

constexpr std::string_view kFormat = "headrace plans 1";
constexpr std::uintmax_t kBytesMost = 1 << 24;

/// The plans in the file; none if it is not a plan cache.
Json::Object read_plans(const std::filesystem::path& file) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(file, error) || std::filesystem::file_size(file, error) > kBytesMost) return {};
  std::ifstream in(file, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  if (!in) return {};
  try {
    const Json whole = Json::parse(text.str());
    const Json* format = whole.find("format");
    const Json* plans = whole.find("plans");
    if (format == nullptr || format->string() == nullptr || *format->string() != kFormat) return {};
    return plans == nullptr || plans->object() == nullptr ? Json::Object{} : *plans->object();
  } catch (const DataError&) {
    return {};
  }
}

/// Keeps other processes from changing files of a folder, so that none overwrites another's new plan. If the lock is
/// not available in time, a plan may be lost and is searched again.
class FolderLock {
 public:
  explicit FolderLock(const std::filesystem::path& folder)
      : folder_(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
    for (int tries = 0; folder_ >= 0 && tries < kLockTries; ++tries) {
      if (::flock(folder_, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return;
      std::this_thread::sleep_for(kLockPause);
    }
  }
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;
  ~FolderLock() {
    if (folder_ >= 0) ::close(folder_);
  }

 private:
  static constexpr int kLockTries = 6000;
  static constexpr Duration kLockPause = std::chrono::milliseconds(5);
  int folder_;
};

double number(const Json& entry, std::string_view name) {
  const Json* member = entry.find(name);
  if (member == nullptr || member->number() == nullptr) throw DataError(fmt::format("no {}", name));
  return *member->number();
}

detail::CachedPlan read_entry(const Json& entry) {
  const Json* plan = entry.find("plan");
  if (plan == nullptr) throw DataError("no plan");
  detail::CachedPlan cached;
  cached.plan = plan_from_json(*plan);
  const double generators = number(entry, "generators");
  const bool has_generators = generators >= 1 && generators <= 64;  // false for NaN
  if (!has_generators) throw DataError("generators");
  cached.generators = static_cast<std::uint32_t>(generators);
  cached.per_second = number(entry, "per_second");
  const double p99_us = number(entry, "p99_us");
  const bool has_figures = cached.per_second > 0 && p99_us >= 0 && p99_us < 1e12;
  if (!has_figures) throw DataError("figures");
  cached.p99 = Duration{static_cast<std::int64_t>(p99_us * 1000)};
  return cached;
}

}  // namespace

std::filesystem::path plan_cache_file() {
  const auto folder = [](const char* name) {
    const char* value = std::getenv(name);
    return std::filesystem::path(value == nullptr ? "" : value);
  };
  // The XDG specification requires that relative paths be ignored.
  std::filesystem::path cache = folder("XDG_CACHE_HOME");
  if (!cache.is_absolute()) {
    const auto home = folder("HOME");
    if (!home.is_absolute()) return {};
    cache = home / ".cache";
  }
  return cache / "headrace" / "plans.json";
}

namespace detail {

std::string cache_key(Device device, const Operator& op, const TunerOptions& options) {
  std::string schedules;
  for (const Schedule schedule : options.schedules) schedules += fmt::format(" {}", to_string(schedule));
  return fmt::format("{} | {} | {} processors | {} {} B in {} B out {}x{} | p99 {} ns | {} generators{}{} |{}",
                     kVersion, device.properties().name, Topology::machine().processors().size(), op.name,
                     op.query_bytes, op.answer_bytes, op.shape.blocks, op.shape.threads, options.bound.count(),
                     options.generators, options.single_thread ? ", single thread" : "",
                     options.threads_max == 0 ? "" : fmt::format(", {} threads at most", options.threads_max),
                     schedules.empty() ? " all schedules" : schedules);
}

std::optional<CachedPlan> read_cached(const std::filesystem::path& file, const std::string& key) noexcept {
  try {
    for (const auto& [name, entry] : read_plans(file)) {
      if (name == key) return read_entry(entry);
    }
  } catch (const std::exception&) {
    return std::nullopt;  // ignore an entry that this version cannot read
  }
  return std::nullopt;
}

bool write_cached(const std::filesystem::path& file, const std::string& key, const CachedPlan& plan) noexcept {
  if (file.empty()) return false;
  try {
    const std::filesystem::path folder = file.has_parent_path() ? file.parent_path() : ".";
    std::filesystem::create_directories(folder);
    const FolderLock lock(folder);
    Json::Object plans = read_plans(file);
    std::erase_if(plans, [&](const auto& entry) { return entry.first == key; });
    plans.emplace_back(key, Json::Object{{"plan", to_json(plan.plan)},
                                         {"generators", static_cast<double>(plan.generators)},
                                         {"per_second", plan.per_second},
                                         {"p99_us", std::chrono::duration<double, std::micro>(plan.p99).count()}});
    const Json whole(Json::Object{{"format", kFormat}, {"plans", std::move(plans)}});
    const std::string text = whole.text(true) + '\n';
    write_output(file, std::as_bytes(std::span(text)));
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

}  // namespace detail

}  // namespace headrace::serve
