#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

#include "base/budget.hpp"
#include "fetch/chunk_cache.hpp"
#include "fetch/host_chunk.hpp"
#include "fetch/lane.hpp"
#include "fetch/query_gate.hpp"
#include "fetch/slabs.hpp"
#include "headrace/base/detail/process.hpp"
#include "headrace/fetch/levels.hpp"
#include "headrace/fetch/source.hpp"

namespace headrace::fetch {

/// A chunk's file bytes in the page cache.
struct DiskChunk {
  std::vector<FileRange> ranges;
  Budget* budget = nullptr;
  std::size_t charged = 0;

  DiskChunk() = default;
  DiskChunk(DiskChunk&& other) noexcept;
  DiskChunk& operator=(DiskChunk&& other) noexcept;
  ~DiskChunk();
  /// Lets the page cache drop the bytes. Called on eviction, not when the caches themselves are destroyed.
  void evicted() const noexcept;
};

using DiskCache = ChunkCache<DiskChunk>;

/// Dictionaries are charged to the CPU level's budget.
class Levels::State final : public DictionaryBudget {
 public:
  State(Device device, const LevelOptions& options);
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() override = default;

  const Birth birth;

  [[nodiscard]] Device device() const noexcept { return device_; }
  [[nodiscard]] const LevelOptions& options() const noexcept { return options_; }

  /// An idle lane with these options, or a new one. Throws DeviceError when the device refuses.
  [[nodiscard]] std::unique_ptr<Lane> take_lane(const LaneOptions& options);
  void give_lane(std::unique_ptr<Lane> lane);

  [[nodiscard]] bool try_charge_strings(std::size_t bytes) override;
  void refund_strings(std::size_t bytes) noexcept override;
  [[nodiscard]] std::string describe_strings() const override;

 private:
  Device device_;
  LevelOptions options_;

 public:
  Budget disk_budget;
  Budget cpu_budget;
  Budget device_budget;
  Slabs host_slabs;
  Slabs device_slabs;
  DiskCache disk;
  HostCache cpu;
  DeviceCache on_device;
  QueryGate gate;  ///< Gate for queries whose columns are fetched through these levels.

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<Lane>> lanes_;
};

}  // namespace headrace::fetch
