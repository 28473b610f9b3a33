#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "headrace/base/result.hpp"
#include "headrace/device/device.hpp"

namespace headrace {

/// A logical processor that this process may run on.
struct Processor {
  int os_index = 0;          ///< As the operating system numbers it.
  int core = 0;              ///< Processors with one core number are hardware threads of one core.
  int last_level_cache = 0;  ///< Processors with one number share the last level cache.
  int numa_node = 0;
  int package = 0;
};

/// The machine as hwloc sees it, restricted to what this process may use.
class Topology {
 public:
  /// Reads the machine once; later calls give the same object. Throws SystemError when hwloc cannot.
  [[nodiscard]] static const Topology& machine();

  [[nodiscard]] const std::vector<Processor>& processors() const noexcept { return processors_; }
  [[nodiscard]] std::size_t core_count() const noexcept;
  [[nodiscard]] std::size_t last_level_cache_count() const noexcept;

  /// The processors by cache distance from the first: other cores of its last level cache, then of its NUMA node, then
  /// the rest; the second hardware thread of a core after the first of all cores at the same distance. Starts on
  /// `numa_node` when given and present.
  [[nodiscard]] std::vector<Processor> by_cache_distance(std::optional<int> numa_node = {}) const;

  /// One line a cache group, for people: "8 cores share 32 MiB L3: 0-7".
  [[nodiscard]] std::string describe() const;

 private:
  Topology();
  std::vector<Processor> processors_;
  std::string description_;
};

/// Binds the calling thread to one logical processor.
[[nodiscard]] Status bind_this_thread(const Processor& processor) noexcept;
/// Lets the calling thread run on any processor of the process again.
[[nodiscard]] Status unbind_this_thread() noexcept;

}  // namespace headrace
