#pragma once

#include <cstdint>

#include "headrace/device/group.hpp"

/// Functions that the blocks of all resident kernels share. The host's side is a ResidentKernel.
namespace headrace::detail {

/// One thread of every block calls it once. The last of `blocks` sets `running`, which tells the host that all blocks
/// run.
/// @param entered  a count in device memory, 0 before the launch
template <class Group, class Word>
HEADRACE_HD void report_entry(const Group& group, Word& entered, Word& running, Word blocks) {
  if (group.fetch_add_on_device(entered, Word{1}) + 1 == blocks) group.store(running, Word{1});
}

/// Called between two reads of host words that found nothing, the `idle_reads`th in a row. After 1,024 of them, more
/// than 1 ms, the block rests for longer, so that an idle kernel leaves the link to others.
template <class Group>
HEADRACE_HD void rest_between_reads(const Group& group, std::uint32_t idle_reads) {
  constexpr std::uint32_t kIdleReads = 1024;
  constexpr std::uint32_t kIdlePauseNs = 500;
  if (idle_reads > kIdleReads) group.pause_ns(kIdlePauseNs);
  group.relax_briefly();
}

}  // namespace headrace::detail
