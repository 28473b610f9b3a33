#pragma once

#include <cstdint>

#include "headrace/device/group.hpp"

namespace headrace::serve {

/// A launch tells the host through it that its queries are answered, which costs less than recording and polling an
/// event. Lies in device memory and belongs to one launch at a time.
struct ArrivalCell {
  std::uint32_t blocks;    ///< Blocks of the running launch that have answered.
  std::uint32_t launches;  ///< Launches that have ended.
  std::uint32_t* told;     ///< The number of launches that have ended, in host memory.
};

namespace detail {

/// Called by a kernel before it reads queries. `cell` is null if the host does not wait for a signal.
template <class Group>
HEADRACE_HD void begin_telling(const Group& group, const ArrivalCell* cell) {
  if (cell == nullptr) return;
  group.launch_dependents();
  // A launch that began early may find stale cache lines of host memory, from before the host wrote the queries.
  if (group.rank() == 0) group.fence_system();
  group.sync();
}

/// Called by a kernel once it has written its part of the answers.
template <class Group>
HEADRACE_HD void tell(const Group& group, ArrivalCell* cell) {
  if (cell == nullptr) return;
  group.sync();
  if (group.rank() != 0) return;
  group.fence_system();
  const std::uint32_t all = group.block_count() * group.item_count();
  if (group.fetch_add_on_device(cell->blocks, std::uint32_t{1}) + 1 != all) return;
  group.store_on_device(cell->blocks, std::uint32_t{0});
  const std::uint32_t launches = group.load_on_device(cell->launches) + 1;
  group.store_on_device(cell->launches, launches);
  group.store(*cell->told, launches);
}

}  // namespace detail

}  // namespace headrace::serve
