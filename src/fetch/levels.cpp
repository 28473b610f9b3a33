#include "headrace/fetch/levels.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/names.hpp"
#include "fetch/levels_state.hpp"
#include "headrace/base/detail/bytes.hpp"
#include "headrace/base/detail/process.hpp"
#include "headrace/base/error.hpp"
#include "headrace/device/detail/host_memory.hpp"

namespace headrace::fetch {

namespace {

constexpr auto kLevels =
    names_of<Level>("a level", {{Level::disk, "disk"}, {Level::cpu, "cpu"}, {Level::device, "device"}});
constexpr auto kHostKinds = names_of<HostKind>("a kind of memory for the CPU level",
                                               {{HostKind::pinned, "pinned"}, {HostKind::pageable, "pageable"}});

LevelOptions with_defaults(Device device, LevelOptions options) {
  if (options.slab_bytes == 0) throw UsageError("levels: slab_bytes must be above 0");
  const std::size_t host = host_memory().free_bytes;
  if (options.disk_bytes == 0) options.disk_bytes = host / 2;
  if (options.cpu_bytes == 0) options.cpu_bytes = host / 4;
  if (options.device_bytes == 0) options.device_bytes = device.memory().free_bytes / 5 * 4;
  return options;
}

template <class Cache>
LevelStatistics statistics_of(const Cache& cache, const Budget& budget) {
  const auto counts = cache.counts();
  return {.budget_bytes = budget.limit(),
          .used_bytes = budget.used(),
          .most_bytes = budget.most(),
          .chunks = counts.chunks,
          .pinned = counts.pinned,
          .hits = counts.hits,
          .misses = counts.misses,
          .evictions = counts.evictions};
}

}  // namespace

std::string_view to_string(Level level) noexcept { return kLevels.of(level); }
Level parse_level(std::string_view text) { return kLevels.parse(text); }
std::string_view to_string(HostKind kind) noexcept { return kHostKinds.of(kind); }
HostKind parse_host_kind(std::string_view text) { return kHostKinds.parse(text); }

DiskChunk::DiskChunk(DiskChunk&& other) noexcept
    : ranges(std::move(other.ranges)), budget(std::exchange(other.budget, nullptr)), charged(other.charged) {}

DiskChunk& DiskChunk::operator=(DiskChunk&& other) noexcept {
  std::swap(ranges, other.ranges);
  std::swap(budget, other.budget);
  std::swap(charged, other.charged);
  return *this;
}

DiskChunk::~DiskChunk() {
  if (budget != nullptr) budget->refund(charged);
}

void DiskChunk::evicted() const noexcept {
  for (const FileRange& range : ranges) range.file->drop(range.offset, range.bytes);
}

Levels::State::State(Device device, const LevelOptions& options)
    : device_(device),
      options_(with_defaults(device, options)),
      disk_budget(options_.disk_bytes),
      cpu_budget(options_.cpu_bytes),
      device_budget(options_.device_bytes),
      // Small slabs leave room for dictionaries beside the slabs in use.
      host_slabs(device, MemoryKind::pinned, std::min(options_.slab_bytes, options_.cpu_bytes / 8), cpu_budget),
      device_slabs(device, MemoryKind::device, options_.slab_bytes, device_budget) {}

bool Levels::State::try_charge_strings(std::size_t bytes) {
  while (!cpu_budget.try_charge(bytes)) {
    const bool evicted = bytes <= cpu_budget.limit() && cpu.evict_one();
    if (!host_slabs.trim() && !evicted) return false;
  }
  return true;
}

void Levels::State::refund_strings(std::size_t bytes) noexcept { cpu_budget.refund(bytes); }

std::string Levels::State::describe_strings() const {
  return fmt::format("the cpu level's budget of {}", format_bytes(cpu_budget.limit()));
}

std::unique_ptr<Lane> Levels::State::take_lane(const LaneOptions& options) {
  {
    const std::lock_guard lock(mutex_);
    const auto found = std::ranges::find_if(lanes_, [&](const auto& lane) { return lane->options() == options; });
    if (found != lanes_.end()) {
      auto lane = std::move(*found);
      lanes_.erase(found);
      return lane;
    }
  }
  return std::make_unique<Lane>(device_, device_slabs, options);
}

void Levels::State::give_lane(std::unique_ptr<Lane> lane) {
  constexpr std::size_t kept = 64;
  std::unique_ptr<Lane> dropped;  // destroyed without the lock
  const std::lock_guard lock(mutex_);
  lanes_.push_back(std::move(lane));
  if (lanes_.size() > kept) {
    dropped = std::move(lanes_.front());
    lanes_.erase(lanes_.begin());
  }
}

Levels::Levels(Device device, const LevelOptions& options) : state_(make_process_owned<State>(device, options)) {}

Device Levels::device() const noexcept { return state_->device(); }
const LevelOptions& Levels::options() const noexcept { return state_->options(); }

LevelStatistics Levels::statistics(Level level) const {
  state_->birth.require("asking the levels of a table for statistics");
  switch (level) {
    case Level::disk: return statistics_of(state_->disk, state_->disk_budget);
    case Level::cpu: return statistics_of(state_->cpu, state_->cpu_budget);
    case Level::device: return statistics_of(state_->on_device, state_->device_budget);
  }
  return {};
}

void Levels::clear(Level level) {
  state_->birth.require("clearing a level of a table");
  switch (level) {
    case Level::disk: return state_->disk.clear();
    case Level::cpu: return state_->cpu.clear();
    case Level::device: return state_->on_device.clear();
  }
}

void Levels::trim() {
  state_->birth.require("trimming the levels of a table");
  state_->device_slabs.trim();
  state_->host_slabs.trim();
}

void Levels::forget(std::uint64_t table) {
  if (state_->birth.inherited()) return;  // another thread of the parent may have held a lock
  state_->on_device.forget(table);
  state_->cpu.forget(table);
  state_->disk.forget(table);
  trim();
}

}  // namespace headrace::fetch
