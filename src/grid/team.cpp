#include "grid/team.hpp"

#include <chrono>
#include <optional>
#include <system_error>

#include "headrace/base/error.hpp"
#include "headrace/device/topology.hpp"

namespace headrace::grid {

namespace {

/// For the next job, which comes soon or not at all.
constexpr Duration kPollLong = std::chrono::milliseconds(1);

/// A processor near a GPU, another for each thread; the host threads of CPU devices go where there is room.
[[nodiscard]] std::optional<Processor> processor_for(Device device, std::size_t number) {
  if (device.kind() == DeviceKind::cpu) return {};
  const auto order = Topology::machine().by_cache_distance(device.properties().numa_node);
  return order[number % order.size()];
}

}  // namespace

Team::Team(const std::vector<Device>& devices)
    : count_(devices.size()), polls_(devices.front().kind() == DeviceKind::cuda) {
  if (count_ == 1) return;
  try {
    for (std::size_t part = 0; part < count_; ++part) {
      const auto processor = processor_for(devices[part], part);
      threads_.emplace_back([this, part, processor] {
        // A refusal (a container without the right) leaves the thread unbound, which is only slower.
        if (processor) static_cast<void>(bind_this_thread(*processor));
        work(part);
      });
    }
  } catch (const std::system_error& error) {
    stop();
    throw SystemError(Errc::system, "starting a host thread for each part: " + error.code().message(),
                      error.code().value());
  }
}

Team::~Team() { stop(); }

void Team::stop() noexcept {
  stopping_.store(true, std::memory_order_seq_cst);
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

/// A thread that sleeps takes longer to wake up than a group of steps leaves it: with GPUs, whose waits keep a
/// processor busy anyway, it polls first.
template <class Ready>
bool Team::poll(const Ready& ready, Duration most) const noexcept {
  if (!polls_) return false;
  const Time began = SteadyClock::now();
  while (!ready()) {
    if (SteadyClock::now() - began > most) return false;
    std::this_thread::yield();
  }
  return true;
}

void Team::work(std::size_t part) noexcept {
  for (std::uint64_t number = 1;; ++number) {
    const auto ready = [&] {
      return posted_.load(std::memory_order_seq_cst) >= number || stopping_.load(std::memory_order_seq_cst);
    };
    if (!poll(ready, kPollLong)) changed_.wait_until(Time::max(), ready);
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
  const auto ready = [&] { return finished_.load(std::memory_order_seq_cst) == number * count_; };
  if (!poll(ready, Duration::max())) changed_.wait_until(Time::max(), ready);
}

}  // namespace headrace::grid
