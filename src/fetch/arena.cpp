#include "fetch/arena.hpp"

#include <tbb/global_control.h>
#include <tbb/parallel_for.h>
#include <tbb/partitioner.h>
#include <tbb/task_arena.h>

// Built without the thread sanitizer (CMakeLists.txt), which takes oneTBB's own hand-over of tasks for races.
namespace headrace::fetch {

void run_in_arena(std::uint32_t threads, void (*work)(void*, std::uint32_t), void* argument) {
  // oneTBB has as many threads as cores unless it is told otherwise; threads of a fetch wait for disks and links. What
  // a program says itself by a tbb::global_control holds, if it is less.
  static const tbb::global_control most(tbb::global_control::max_allowed_parallelism, kThreadsMost);
  tbb::task_arena arena(static_cast<int>(threads));
  arena.execute([&] {
    tbb::parallel_for(0U, threads, [=](std::uint32_t thread) { work(argument, thread); }, tbb::simple_partitioner());
  });
}

}  // namespace headrace::fetch
