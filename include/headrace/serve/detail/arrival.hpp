#pragma once

#include <cstdint>

#include "headrace/device/group.hpp"

namespace headrace::serve {

/// Through which a launch tells the host that its queries are answered, for less than recording and polling an event
/// costs. Lies in device memory and is of one launch at a time.
struct ArrivalCell {
  std::uint32_t blocks;    ///< That have answered, of the launch that runs.
  std::uint32_t launches;  ///< That have ended.
  std::uint32_t* told;     ///< The same number, in host memory.
};

namespace detail {

/// What a kernel does before it reads queries. `cell` is null where nobody waits to be told.
template <class Group>
HEADRACE_HD void begin_telling(const Group& group, const ArrivalCell* cell) {
  if (cell == nullptr) return;
  group.launch_dependents();
  // A launch that began early may find host memory in a cache as it was before the host wrote the queries.
  if (group.rank() == 0) group.fence_system();
  group.sync();
}

/// What a kernel does once it has written its part of the answers.
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
