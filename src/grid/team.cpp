#include "grid/team.hpp"

#include "headrace/base/detail/threads.hpp"
#include "headrace/device/detail/host_thread.hpp"

namespace headrace::grid {

Team::Team(const std::vector<Device>& devices) : count_(devices.size()) {
  if (count_ == 1) return;
  try {
    threads_.reserve(count_);
    start_each("host threads of a grid, one per part,", count_, [&](std::size_t part) {
      threads_.push_back(start_thread_near(devices[part], part, [this, part] { work(part); }));
    });
  } catch (...) {
    stop();
    throw;
  }
}

Team::~Team() { stop(); }

void Team::stop() noexcept {
  stopping_.store(true, std::memory_order_seq_cst);
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void Team::work(std::size_t part) noexcept {
  for (std::uint64_t number = 1;; ++number) {
    changed_.wait_until(Time::max(), [&] {
      return posted_.load(std::memory_order_seq_cst) >= number || stopping_.load(std::memory_order_seq_cst);
    });
    if (posted_.load(std::memory_order_acquire) < number) return;
    (*job_)(part);
    finished_.fetch_add(1, std::memory_order_seq_cst);
    changed_.notify_all();
  }
}

void Team::run(const std::function<void(std::size_t)>& job) noexcept {
  if (threads_.empty()) return job(0);
  job_ = &job;
  const std::uint64_t number = posted_.load(std::memory_order_relaxed) + 1;
  posted_.store(number, std::memory_order_seq_cst);
  changed_.notify_all();
  changed_.wait_until(Time::max(), [&] { return finished_.load(std::memory_order_seq_cst) == number * count_; });
}

}  // namespace headrace::grid
