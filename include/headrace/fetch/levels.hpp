#pragma once

// Levels are the three caches through which chunks of tables get to a device: the page cache, host memory, and the
// memory of the device, each with a budget.
//
//     headrace::fetch::Levels levels(headrace::Device::parse("best"), {.cpu_bytes = std::size_t{4} << 30});
//     headrace::fetch::LevelStatistics cached = levels.statistics(headrace::fetch::Level::cpu);
//     std::printf("%zu of %zu bytes in %zu chunks\n", cached.used_bytes, cached.budget_bytes, cached.chunks);
//     levels.clear(headrace::fetch::Level::cpu);

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "headrace/base/detail/bytes.hpp"
#include "headrace/device/device.hpp"

namespace headrace::fetch {

/// The levels that a chunk comes down through.
enum class Level : std::uint8_t {
  disk,   ///< The file's bytes in the page cache.
  cpu,    ///< Values in host memory.
  device  ///< Values in the device's memory.
};
inline constexpr std::size_t kLevelCount = 3;

[[nodiscard]] std::string_view to_string(Level level) noexcept;
/// Throws UsageError that lists the levels.
[[nodiscard]] Level parse_level(std::string_view text);

/// What the CPU level is made of.
enum class HostKind : std::uint8_t {
  pinned,   ///< Page-locked slabs: a chunk is copied there once, and goes to the device at link speed each time.
  pageable  ///< The source's own memory, without a copy (a mapped file, what a decoder made); copied in pieces on the
            ///< way.
};

[[nodiscard]] std::string_view to_string(HostKind kind) noexcept;
/// Throws UsageError that lists the kinds.
[[nodiscard]] HostKind parse_host_kind(std::string_view text);

/// A budget of 0 is the default: half of the machine's free memory for the disk level, a quarter for the CPU level,
/// four fifths of the device's free memory.
struct LevelOptions {
  std::size_t disk_bytes = 0;
  std::size_t cpu_bytes = 0;
  std::size_t device_bytes = 0;
  HostKind host = HostKind::pinned;
  /// What the driver is asked for at once. Page-locking costs more than copying: slabs are kept.
  std::size_t slab_bytes = 64 * kMiB;
};

struct LevelStatistics {
  std::size_t budget_bytes = 0;
  std::size_t used_bytes = 0;  ///< Charged to the budget: slabs count as a whole.
  std::size_t most_bytes = 0;  ///< The most that ever was.
  std::size_t chunks = 0;
  std::size_t pinned = 0;  ///< Those of the chunks that are in use or being made.
  std::uint64_t hits = 0;
  std::uint64_t misses = 0;
  std::uint64_t evictions = 0;
};

/// The three caches through which chunks of any number of tables get to one device. A value: copies are the same
/// caches, which live as long as a copy or a Fetch does. Safe to use from any thread.
class Levels {
 public:
  /// Takes no memory yet. Throws UsageError for options out of range.
  explicit Levels(Device device, const LevelOptions& options = {});

  [[nodiscard]] Device device() const noexcept;
  [[nodiscard]] const LevelOptions& options() const noexcept;  ///< With the budgets that stand for 0.
  [[nodiscard]] LevelStatistics statistics(Level level) const;
  /// Empties a level of what is not in use. The disk level's pages leave the page cache, as far as the system agrees;
  /// slabs stay for the next chunks.
  void clear(Level level);
  /// Gives slabs that nothing lies in back to the driver. It may wait for the device.
  void trim();
  /// Empties every level of a table, and trims: call it when the table is not fetched any more.
  void forget(std::uint64_t table);

  class State;
  [[nodiscard]] const std::shared_ptr<State>& state() const noexcept { return state_; }

 private:
  std::shared_ptr<State> state_;
};

}  // namespace headrace::fetch
