#pragma once

// Levels are the three caches through which chunks of tables reach a device: the page cache, host memory, and the
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

/// The levels through which a chunk reaches a device.
enum class Level : std::uint8_t {
  disk,   ///< The file's bytes in the page cache.
  cpu,    ///< Values in host memory.
  device  ///< Values in the device's memory.
};
/// The number of levels.
inline constexpr std::size_t kLevelCount = 3;

/// "disk", "cpu" or "device".
[[nodiscard]] std::string_view to_string(Level level) noexcept;
/// The level of that name. Throws UsageError that lists the levels if there is none.
[[nodiscard]] Level parse_level(std::string_view text);

/// The memory of the CPU level.
enum class HostKind : std::uint8_t {
  pinned,   ///< Page-locked slabs: a chunk is copied there once, and goes to the device at link speed each time.
  pageable  ///< The source's own memory, without a copy (a mapped file, a decoder's output); copied in pieces on the
            ///< way.
};

/// "pinned" or "pageable".
[[nodiscard]] std::string_view to_string(HostKind kind) noexcept;
/// The kind of that name. Throws UsageError that lists the kinds if there is none.
[[nodiscard]] HostKind parse_host_kind(std::string_view text);

/// The budgets of Levels. A budget of 0 is the default: half of the machine's free memory for the disk level, a quarter
/// for the CPU level, four fifths of the device's free memory for the device level.
struct LevelOptions {
  std::size_t disk_bytes = 0;        ///< Budget of the disk level.
  std::size_t cpu_bytes = 0;         ///< Budget of the CPU level.
  std::size_t device_bytes = 0;      ///< Budget of the device level.
  HostKind host = HostKind::pinned;  ///< The memory of the CPU level.
  /// Bytes of a slab, the unit of allocation. Slabs are kept, because page-locking costs more than copying.
  std::size_t slab_bytes = 64 * kMiB;
};

/// The state of one level, and what it has done so far.
struct LevelStatistics {
  std::size_t budget_bytes = 0;  ///< The budget.
  std::size_t used_bytes = 0;    ///< Charged to the budget: slabs count as a whole.
  std::size_t most_bytes = 0;    ///< The highest value of used_bytes so far.
  std::size_t chunks = 0;        ///< Chunks at this level.
  std::size_t pinned = 0;        ///< Chunks that are in use or being made.
  std::uint64_t hits = 0;        ///< Chunks that were looked up and found.
  std::uint64_t misses = 0;      ///< Chunks that were looked up and not found.
  std::uint64_t evictions = 0;   ///< Chunks removed to make room.
};

/// The three caches through which chunks of any number of tables reach one device. Copies share the caches, which live
/// as long as any copy or Fetch does. Safe to use from any thread.
class Levels {
 public:
  /// Takes no memory yet. Throws UsageError for options out of range.
  explicit Levels(Device device, const LevelOptions& options = {});

  /// The device of the last level.
  [[nodiscard]] Device device() const noexcept;
  [[nodiscard]] const LevelOptions& options() const noexcept;  ///< With defaults filled in for budgets of 0.
  /// The state of a level now.
  [[nodiscard]] LevelStatistics statistics(Level level) const;
  /// Removes all chunks of a level that are not in use. Pages of the disk level leave the page cache if the system
  /// agrees; slabs stay for later chunks.
  void clear(Level level);
  /// Returns empty slabs to the driver. May wait for the device.
  void trim();
  /// Removes a table (Source::id()) from every level, and trims. For tables that will not be fetched again.
  void forget(std::uint64_t table);

  /// For Headrace's own use.
  class State;
  /// For Headrace's own use: the caches.
  [[nodiscard]] const std::shared_ptr<State>& state() const noexcept { return state_; }

 private:
  std::shared_ptr<State> state_;
};

}  // namespace headrace::fetch
