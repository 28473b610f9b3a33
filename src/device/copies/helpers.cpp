#include "device/copies/helpers.hpp"

#include <pthread.h>

#include <exception>
#include <new>
#include <system_error>
#include <utility>

#include "headrace/device/topology.hpp"

namespace headrace::detail {

namespace {

/// The processors of the node. None on a machine with one node, where the system places the threads: bound threads
/// would wait for a processor that the caller's own threads hold.
std::vector<Processor> processors_near(int numa_node) {
  std::vector<Processor> near;
  bool several = false;
  for (const Processor& processor : Topology::machine().by_cache_distance(numa_node)) {
    if (processor.numa_node == numa_node) {
      near.push_back(processor);
    } else {
      several = true;
    }
  }
  if (!several) near.clear();
  return near;
}

/// Binds the calling thread to a processor of the node, a different one for each number. A thread that stays unbound is
/// slower but correct.
void settle_near(std::optional<int> numa_node, std::uint32_t number) noexcept {
  // A thread inherits the binding of its creator, which may be bound to one processor.
  static_cast<void>(unbind_this_thread());
  if (!numa_node) return;
  try {
    const std::vector<Processor> near = processors_near(*numa_node);
    if (!near.empty()) static_cast<void>(bind_this_thread(near[number % near.size()]));
  } catch (const std::exception&) {
    return;  // the topology cannot be read, or memory has run out
  }
}

/// False if the system starts no more threads.
template <class Run>
bool start_one(std::vector<std::thread>& threads, Run run) noexcept {
  try {
    threads.emplace_back(std::move(run));
  } catch (const std::system_error&) {
    return false;
  } catch (const std::bad_alloc&) {
    return false;
  }
  return true;
}

}  // namespace

Helpers::~Helpers() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

std::uint32_t Helpers::start(std::uint32_t count, std::optional<int> numa_node) noexcept {
  while (threads_.size() < count) {
    const auto number = static_cast<std::uint32_t>(threads_.size());
    if (!start_one(threads_, [this, number, numa_node] { run(number, numa_node); })) break;
  }
  return static_cast<std::uint32_t>(threads_.size());
}

void Helpers::begin(std::uint32_t count, Work work, void* self) noexcept {
  {
    const std::lock_guard lock(mutex_);
    ++job_;
    wanted_ = count;
    working_ = count;
    work_ = work;
    self_ = self;
  }
  changed_.notify_all();
}

void Helpers::end() noexcept {
  std::unique_lock lock(mutex_);
  idle_.wait(lock, [this] { return working_ == 0; });
}

void Helpers::run(std::uint32_t number, std::optional<int> numa_node) noexcept {
  settle_near(numa_node, number);
  pthread_setname_np(pthread_self(), "headrace-helper");
  std::uint64_t seen = 0;
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return over_ || (job_ != seen && number < wanted_); });
    if (over_) return;
    seen = job_;
    lock.unlock();
    work_(self_, number);
    lock.lock();
    if (--working_ == 0) idle_.notify_one();
  }
}

}  // namespace headrace::detail
