#pragma once

#include <cstdint>

#include "headrace/device/group.hpp"

namespace headrace::ingest {

/// Number of words with which the blocks of a kernel report that they are done.
inline constexpr std::uint32_t kDoneWords = 1024;

/// How a kernel reports that its parts are copied: each block (each item on a CPU device) writes `number` to its word.
/// Numbers increase in the order of the stream.
struct DoneArgument {
  std::uint64_t* words = nullptr;  ///< kDoneWords words in host memory; null: nothing is reported.
  std::uint64_t number = 0;
};

/// Every thread calls this after its last copy.
template <class Group>
HEADRACE_HD void say_done(const Group& group, const DoneArgument& done) {
  if (done.words == nullptr) return;
  group.sync();
  if (group.rank() != 0) return;
  const std::uint32_t own = group.item() * group.block_count() + group.block();
  group.store(done.words[own], done.number);  // pairs with BuildStream::said()
}

}  // namespace headrace::ingest
