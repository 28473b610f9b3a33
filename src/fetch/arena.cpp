#include "fetch/arena.hpp"

#include <tbb/global_control.h>
#include <tbb/parallel_for.h>
#include <tbb/partitioner.h>
#include <tbb/task_arena.h>

// CMakeLists.txt builds this file without the thread sanitizer, which reports oneTBB's own hand-over of tasks as races.
namespace headrace::fetch {

void run_in_arena(std::uint32_t threads, void (*work)(void*, std::uint32_t), void* argument) {
  // By default oneTBB has one thread per core, but fetch threads mostly wait for disks and links and may be more. A
  // lower limit that the program sets with its own tbb::global_control still applies.
  static const tbb::global_control most(tbb::global_control::max_allowed_parallelism, kThreadsMost);
  tbb::task_arena arena(static_cast<int>(threads));
  arena.execute([&] {
    tbb::parallel_for(0U, threads, [=](std::uint32_t thread) { work(argument, thread); }, tbb::simple_partitioner());
  });
}

}  // namespace headrace::fetch
