#pragma once

#include <cstdint>

#include "headrace/device/group.hpp"

namespace headrace::ingest {

/// The words by which kernels say that they are done: so many blocks have one.
inline constexpr std::uint32_t kDoneWords = 1024;

/// What a kernel is to say once its parts are copied: each block (each item on a CPU device) writes `number` to its
/// word. Numbers go up in the order of the stream.
struct DoneArgument {
  std::uint64_t* words = nullptr;  ///< kDoneWords, in memory of the host; null: nobody looks.
  std::uint64_t number = 0;
};

/// Every thread calls once it has copied what it will.
template <class Group>
HEADRACE_HD void say_done(const Group& group, const DoneArgument& done) {
  if (done.words == nullptr) return;
  group.sync();
  if (group.rank() != 0) return;
  const std::uint32_t own = group.item() * group.block_count() + group.block();
  group.store(done.words[own], done.number);  // pairs with BuildStream::said()
}

}  // namespace headrace::ingest
