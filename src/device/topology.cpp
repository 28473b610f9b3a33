#include "headrace/device/topology.hpp"

#include <fmt/format.h>
#include <hwloc.h>
#include <sched.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <tuple>

#include "base/names.hpp"
#include "headrace/base/detail/bytes.hpp"
#include "headrace/base/error.hpp"

namespace headrace {

namespace {

constexpr auto kDistances =
    names_of<CacheDistance>("a cache distance", {{CacheDistance::same_processor, "same processor"},
                                                 {CacheDistance::same_core, "same core"},
                                                 {CacheDistance::same_cache, "same last level cache"},
                                                 {CacheDistance::same_node, "same NUMA node, other cache"},
                                                 {CacheDistance::other_node, "other NUMA node"}});

struct FreeTopology {
  void operator()(hwloc_topology* topology) const noexcept { hwloc_topology_destroy(topology); }
};
struct FreeBitmap {
  void operator()(hwloc_bitmap_s* bitmap) const noexcept { hwloc_bitmap_free(bitmap); }
};
struct FreeCpuSet {
  void operator()(cpu_set_t* set) const noexcept { CPU_FREE(set); }
};
using TopologyPointer = std::unique_ptr<hwloc_topology, FreeTopology>;
using BitmapPointer = std::unique_ptr<hwloc_bitmap_s, FreeBitmap>;
using CpuSetPointer = std::unique_ptr<cpu_set_t, FreeCpuSet>;

/// The topology of this machine, or a synthetic one if there is a description.
TopologyPointer load_topology(const char* description) {
  hwloc_topology_t raw = nullptr;
  if (hwloc_topology_init(&raw) != 0) throw_errno("reading the machine's topology with hwloc");
  TopologyPointer topology(raw);
  if (description != nullptr && hwloc_topology_set_synthetic(raw, description) != 0) {
    throw UsageError(fmt::format("hwloc does not accept the machine description '{}'", description));
  }
  if (hwloc_topology_load(raw) != 0) throw_errno("reading the machine's topology with hwloc");
  return topology;
}

/// The processors that threads of this process may run on; all if the system does not tell.
BitmapPointer allowed_processors(hwloc_topology_t topology) {
  BitmapPointer allowed(hwloc_bitmap_alloc());
  if (!allowed) throw_errno("reading the machine's topology with hwloc", ENOMEM);
  if (hwloc_get_cpubind(topology, allowed.get(), HWLOC_CPUBIND_PROCESS) != 0 ||
      hwloc_bitmap_iszero(allowed.get()) != 0) {
    hwloc_bitmap_fill(allowed.get());
  }
  return allowed;
}

/// The largest cache above a processor; null if hwloc knows none.
hwloc_obj_t last_level_cache(hwloc_obj_t processor) {
  hwloc_obj_t last = nullptr;
  for (hwloc_obj_t above = processor; above != nullptr; above = above->parent) {
    if (hwloc_obj_type_is_dcache(above->type) != 0) last = above;
  }
  return last;
}

int number_of(hwloc_topology_t topology, hwloc_obj_type_t type, hwloc_obj_t processor) {
  const hwloc_obj_t above = hwloc_get_ancestor_obj_by_type(topology, type, processor);
  return above == nullptr ? 0 : static_cast<int>(above->logical_index);
}

int numa_node_of(hwloc_topology_t topology, hwloc_obj_t processor) {
  hwloc_obj_t node = nullptr;
  while ((node = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_NUMANODE, node)) != nullptr) {
    if (hwloc_bitmap_isset(node->cpuset, processor->os_index) != 0) return static_cast<int>(node->os_index);
  }
  return 0;
}

Processor read_processor(hwloc_topology_t topology, hwloc_obj_t object) {
  const hwloc_obj_t cache = last_level_cache(object);
  Processor processor;
  processor.os_index = static_cast<int>(object->os_index);
  processor.core = number_of(topology, HWLOC_OBJ_CORE, object);
  processor.package = number_of(topology, HWLOC_OBJ_PACKAGE, object);
  processor.numa_node = numa_node_of(topology, object);
  // Without a known cache, processors of a package count as close.
  processor.last_level_cache = cache == nullptr ? processor.package : static_cast<int>(cache->logical_index);
  return processor;
}

/// "0-3,8", from sorted numbers.
std::string ranges(const std::vector<int>& numbers) {
  std::string text;
  for (std::size_t first = 0; first < numbers.size();) {
    std::size_t last = first;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    text += text.empty() ? "" : ",";
    text += first == last ? fmt::format("{}", numbers[first]) : fmt::format("{}-{}", numbers[first], numbers[last]);
    first = last + 1;
  }
  return text;
}

struct CacheGroup {
  std::set<int> cores;
  std::vector<int> processors;
  std::string cache;
};

std::string describe_group(const CacheGroup& group) {
  const std::size_t cores = group.cores.size();
  return fmt::format("{} {} {}: {}", cores, cores == 1 ? "core has" : "cores share", group.cache,
                     ranges(group.processors));
}

std::string cache_name(hwloc_obj_t cache) {
  if (cache == nullptr) return "no known cache";
  return fmt::format("{} L{}", format_bytes(cache->attr->cache.size), cache->attr->cache.depth);
}

Status bind_to(const std::vector<Processor>& processors) noexcept {
  int highest = 0;
  for (const Processor& processor : processors) highest = std::max(highest, processor.os_index);
  const auto count = static_cast<std::size_t>(highest) + 1;
  const CpuSetPointer set(CPU_ALLOC(count));
  if (!set) return Errc::out_of_memory;
  const std::size_t bytes = CPU_ALLOC_SIZE(count);
  CPU_ZERO_S(bytes, set.get());
  for (const Processor& processor : processors) {
    if (processor.os_index < 0) return Errc::invalid_argument;
    CPU_SET_S(static_cast<std::size_t>(processor.os_index), bytes, set.get());
  }
  if (sched_setaffinity(0, bytes, set.get()) != 0) return Error{Errc::system, errno};
  return {};
}

}  // namespace

const Topology& Topology::machine() {
  // Never destroyed, because threads may still use it while the process exits.
  static const Topology* const machine = new Topology(load_topology(nullptr).get());
  return *machine;
}

Topology Topology::synthetic(const std::string& description) {
  return Topology(load_topology(description.c_str()).get());
}

Topology::Topology(hwloc_topology* topology) {
  const BitmapPointer allowed = allowed_processors(topology);
  std::map<int, CacheGroup> groups;
  hwloc_obj_t object = nullptr;
  while ((object = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_PU, object)) != nullptr) {
    if (hwloc_bitmap_isset(allowed.get(), object->os_index) == 0) continue;
    const Processor processor = read_processor(topology, object);
    CacheGroup& group = groups[processor.last_level_cache];
    group.cores.insert(processor.core);
    group.processors.push_back(processor.os_index);
    group.cache = cache_name(last_level_cache(object));
    processors_.push_back(processor);
  }
  if (processors_.empty()) throw SystemError(Errc::system, "hwloc finds no processor that this process may run on");
  std::sort(processors_.begin(), processors_.end(),
            [](const Processor& a, const Processor& b) { return a.os_index < b.os_index; });
  for (auto& [number, group] : groups) {
    std::sort(group.processors.begin(), group.processors.end());
    if (!description_.empty()) description_ += '\n';
    description_ += describe_group(group);
  }
}

std::size_t Topology::core_count() const noexcept {
  std::size_t count = 0;
  for (std::size_t i = 0; i < processors_.size(); ++i) {
    const auto same = [&](const Processor& p) { return p.core == processors_[i].core; };
    if (std::none_of(processors_.begin(), processors_.begin() + static_cast<std::ptrdiff_t>(i), same)) ++count;
  }
  return count;
}

std::size_t Topology::last_level_cache_count() const noexcept {
  std::size_t count = 0;
  for (std::size_t i = 0; i < processors_.size(); ++i) {
    const auto same = [&](const Processor& p) { return p.last_level_cache == processors_[i].last_level_cache; };
    if (std::none_of(processors_.begin(), processors_.begin() + static_cast<std::ptrdiff_t>(i), same)) ++count;
  }
  return count;
}

std::vector<Processor> Topology::by_cache_distance(std::optional<int> numa_node) const {
  const auto on_node = [&](const Processor& p) { return p.numa_node == numa_node; };
  const auto wanted = std::find_if(processors_.begin(), processors_.end(), on_node);
  const Processor start = wanted == processors_.end() ? processors_.front() : *wanted;

  struct Ranked {
    std::tuple<int, int, int, int, int> rank;
    Processor processor;
  };
  std::vector<Ranked> ranked;
  std::map<int, int> threads_seen;  // by core
  for (const Processor& p : processors_) {
    const int thread = threads_seen[p.core]++;
    const int distance = p.last_level_cache == start.last_level_cache && p.numa_node == start.numa_node ? 0
                         : p.numa_node == start.numa_node                                               ? 1
                                                                                                        : 2;
    ranked.push_back({{distance, thread, p.numa_node, p.last_level_cache, p.os_index}, p});
  }
  std::sort(ranked.begin(), ranked.end(), [](const Ranked& a, const Ranked& b) { return a.rank < b.rank; });
  std::vector<Processor> sorted;
  sorted.reserve(ranked.size());
  for (const Ranked& entry : ranked) sorted.push_back(entry.processor);
  return sorted;
}

std::string Topology::describe() const { return description_; }

std::string Topology::reordering() const {
  const std::size_t caches = last_level_cache_count();
  if (processors_.size() == 1) return "one processor, so there is nothing to reorder";
  if (caches == 1) {
    return core_count() == processors_.size()
               ? "one last level cache: all cores are equally near, so reordering has no effect"
               : "one last level cache: all cores are equally near, so reordering has no effect, except that hardware "
                 "threads that share a core come last";
  }
  return fmt::format("{} last level caches: threads that communicate are placed on cores of one cache", caches);
}

CacheDistance distance(const Processor& a, const Processor& b) noexcept {
  if (a.os_index == b.os_index) return CacheDistance::same_processor;
  if (a.core == b.core) return CacheDistance::same_core;
  if (a.numa_node != b.numa_node) return CacheDistance::other_node;
  return a.last_level_cache == b.last_level_cache ? CacheDistance::same_cache : CacheDistance::same_node;
}

std::string_view to_string(CacheDistance distance) noexcept { return kDistances.of(distance); }

Status bind_this_thread(const Processor& processor) noexcept {
  try {
    return bind_to({processor});
  } catch (const std::bad_alloc&) {
    return Errc::out_of_memory;
  }
}

Status unbind_this_thread() noexcept {
  try {
    return bind_to(Topology::machine().processors());
  } catch (const Exception& error) {
    return Error{error.code(), error.native()};
  } catch (const std::bad_alloc&) {
    return Errc::out_of_memory;
  }
}

}  // namespace headrace
