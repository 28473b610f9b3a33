#pragma once

#include <cstdint>

#include "headrace/device/detail/resident_blocks.hpp"
#include "ingest/resident/acknowledge.hpp"
#include "ingest/resident/build.hpp"
#include "ingest/resident/poll.hpp"

namespace headrace::ingest::resident {

/// Runs the role of this block of the kernel until it is told to leave.
template <class Group>
HEADRACE_HD void take_role(const Group& group, const View& view) {
  if (group.rank() == 0) {
    headrace::detail::report_entry(group, *view.entered, *view.running, std::uint64_t{group.block_count()});
  }
  static_assert(kControlBlocks == 2);
  if (group.block() == 0) {
    Poll<Group>(group, view).run();
  } else if (group.block() == 1) {
    Acknowledge<Group>(group, view).run();
  } else {
    Build<Group>(group, view).run();
  }
}

}  // namespace headrace::ingest::resident
