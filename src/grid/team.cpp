#include "grid/team.hpp"

#include <optional>

#include "headrace/base/threads.hpp"
#include "headrace/device/topology.hpp"

namespace headrace::grid {

namespace {

/// A processor near a GPU, another for each thread; the host threads of CPU devices go where there is room.
[[nodiscard]] std::optional<Processor> processor_for(Device device, std::size_t number) {
  if (device.kind() == DeviceKind::cpu) return {};
  const auto order = Topology::machine().by_cache_distance(device.properties().numa_node);
  return order[number % order.size()];
}

}  // namespace

Team::Team(const std::vector<Device>& devices) : count_(devices.size()) {
  if (count_ == 1) return;
  try {
    threads_.reserve(count_);
    start_each("host threads of a grid, one a part,", count_, [&](std::size_t part) {
      const auto processor = processor_for(devices[part], part);
      threads_.emplace_back([this, part, processor] {
        // A refusal (a container without the right) leaves the thread unbound, which is only slower.
        if (processor) static_cast<void>(bind_this_thread(*processor));
        work(part);
      });
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
