#pragma once

// Topology says which processors this process may use, and which of them share cores, caches and memory nodes.
//
//     const headrace::Topology& machine = headrace::Topology::machine();
//     std::printf("%s\n", machine.describe().c_str());
//     const std::vector<headrace::Processor> near = machine.by_cache_distance();
//     headrace::bind_this_thread(near.front()).or_throw("binding the thread");
//     headrace::CacheDistance distance = headrace::distance(near.front(), near.back());

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/base/result.hpp"
#include "headrace/device/device.hpp"

struct hwloc_topology;

namespace headrace {

/// A logical processor that this process may run on.
struct Processor {
  int os_index = 0;          ///< Its number in the operating system.
  int core = 0;              ///< Processors with one core number are hardware threads of one core.
  int last_level_cache = 0;  ///< Processors with one number share the last level cache.
  int numa_node = 0;         ///< The memory node nearest to it.
  int package = 0;           ///< The socket.
};

/// How far one processor is from another, by what they share.
enum class CacheDistance : std::uint8_t {
  same_processor,  ///< They are one.
  same_core,       ///< Hardware threads of one core.
  same_cache,      ///< Cores of one NUMA node and last level cache.
  same_node,       ///< Cores of one NUMA node with different last level caches.
  other_node,      ///< Cores of different NUMA nodes.
};

/// How far `a` is from `b`. Symmetric; both must come from the same Topology.
[[nodiscard]] CacheDistance distance(const Processor& a, const Processor& b) noexcept;
/// "same core", "same last level cache", ...
[[nodiscard]] std::string_view to_string(CacheDistance distance) noexcept;

/// The machine as hwloc sees it, restricted to what this process may use.
class Topology {
 public:
  /// Reads the machine once; later calls return the same object. Throws SystemError if hwloc fails.
  [[nodiscard]] static const Topology& machine();

  /// A machine that hwloc makes from a description, e.g. "numa:2 l3:4 core:4 pu:2", for tests of other machines. Throws
  /// UsageError if hwloc does not understand it.
  [[nodiscard]] static Topology synthetic(const std::string& description);

  /// The processors that this process may use, by os_index.
  [[nodiscard]] const std::vector<Processor>& processors() const noexcept { return processors_; }
  /// Physical cores among them.
  [[nodiscard]] std::size_t core_count() const noexcept;
  /// Last level caches among them.
  [[nodiscard]] std::size_t last_level_cache_count() const noexcept;

  /// The processors by cache distance from the first: other cores of its last level cache, then of its NUMA node, then
  /// the rest. The second hardware thread of a core comes after the first ones of all cores at the same distance.
  /// Starts on `numa_node` if given and present.
  [[nodiscard]] std::vector<Processor> by_cache_distance(std::optional<int> numa_node = {}) const;

  /// One line per cache group, for people: "8 cores share 32 MiB L3: 0-7".
  [[nodiscard]] std::string describe() const;
  /// Whether the order in which threads are bound to cores can matter, and why: "4 last level caches: ..." or "one last
  /// level cache: ... no effect".
  [[nodiscard]] std::string reordering() const;

 private:
  explicit Topology(hwloc_topology* topology);
  std::vector<Processor> processors_;
  std::string description_;
};

/// Binds the calling thread to one logical processor. Returns the system's error if it refuses.
[[nodiscard]] Status bind_this_thread(const Processor& processor) noexcept;
/// Lets the calling thread run on any processor of the process again. Returns the system's error if it refuses.
[[nodiscard]] Status unbind_this_thread() noexcept;

}  // namespace headrace
