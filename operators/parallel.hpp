#pragma once

#include <algorithm>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "headrace/base/detail/threads.hpp"

namespace headrace::operators {

/// The number of threads for `items` items: that of the machine, or `wanted` if it is not 0, but at most one for each
/// `least` items.
[[nodiscard]] inline std::uint32_t thread_count(std::uint64_t items, std::uint64_t least, std::uint32_t wanted = 0) {
  const std::uint64_t machine = wanted != 0 ? wanted : std::max(1U, std::thread::hardware_concurrency());
  return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(items / least, 1, machine));
}

/// Calls work(0) in the calling thread, and work(1) to work(threads - 1) each in its own thread. Returns when all have
/// ended, and throws what one of them threw.
template <class Work>
void in_parallel(std::uint32_t threads, const Work& work) {
  std::mutex mutex;
  std::exception_ptr failure;
  const auto guarded = [&](std::uint32_t number) {
    try {
      work(number);
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!failure) failure = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> others;
    others.reserve(threads);
    start_each("threads that share a piece of work", threads - 1,
               [&](std::size_t i) { others.emplace_back(guarded, static_cast<std::uint32_t>(i + 1)); });
    guarded(0);
  }
  if (failure) std::rethrow_exception(failure);
}

/// Part `number` of `parts` equal parts of 0..count.
struct Part {
  std::uint64_t begin;
  std::uint64_t end;

  Part(std::uint64_t count, std::uint32_t number, std::uint32_t parts)
      : begin(count * number / parts), end(count * (number + 1) / parts) {}
};

}  // namespace headrace::operators
