#pragma once

// A group is what a kernel sees of the threads that run it. The kernel is a template over it, so that the same code
// runs on CPU devices and, compiled by nvcc, on CUDA devices.
//
//     struct Sum {
//       template <class Group>
//       HEADRACE_HD static void run(Group group, const int* values, int* total) {
//         const int sum = group.sum(values[group.rank()]);  // over the threads of the block
//         if (group.rank() == 0) *total = sum;
//       }
//     };
//     int value = 3, total = 0;
//     Sum::run(headrace::CpuGroup(), &value, &total);  // on a CPU device, a block is one thread

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <thread>
#include <type_traits>

#if defined(__CUDACC__)
#define HEADRACE_HD __host__ __device__
/// Before a function that is called from HEADRACE_HD templates and only ever runs on the host.
#define HEADRACE_HOST_BODY _Pragma("nv_exec_check_disable")
#else
/// Marks a function that is compiled for the host and, under nvcc, for the device as well.
#define HEADRACE_HD
#define HEADRACE_HOST_BODY
#endif

namespace headrace {

/// Twelve bytes and the sequence number that makes them valid, written and read as one: what fits in a few units needs
/// neither a fence nor a word of its own that says it is there.
struct alignas(16) SealedUnit {
  static constexpr std::uint32_t kDataBytes = 12;
  std::uint32_t data[3];
  std::uint32_t sequence;
};

namespace detail {

/// One T for each host thread. A function of its own, because nvcc allows no thread_local where it may see device code.
/// A large one is allocated by the threads that want it: all of those together would not fit the stack of a thread,
/// which holds what every thread has.
template <class T>
[[nodiscard]] T& thread_storage() noexcept {
  constexpr std::size_t kLarge = 1024;
  if constexpr (sizeof(T) < kLarge) {
    static thread_local T storage;
    return storage;
  } else {
    static thread_local const std::unique_ptr<T> storage = std::make_unique<T>();
    return *storage;
  }
}

}  // namespace detail

/// Memory of a barrier that one host thread and one thread of a kernel meet at, again and again: a
/// cuda::barrier<thread_scope_system> on a CUDA device, a count of arrivals on a CPU device. What a side wrote before
/// it arrived is visible to the other once the barrier has been passed.
struct alignas(64) BarrierCell {
  std::byte storage[64];
};

/// What a kernel sees of the threads that run it. Kernel logic is a template over this interface, so that one
/// function runs on either device:
///
///   rank(), size()           this thread among the threads of its block
///   block(), block_count()   this block among the blocks that share the item
///   thread(), thread_count() this thread among all threads of all blocks of the item
///   item(), item_count()     which of the independent items of this launch is being worked on
///   kLanes                   consecutive indices that one thread should take at once (SIMD on the CPU, 1 on CUDA)
///   sync()                   barrier over the block; memory written before is visible after
///   sum(v), sum_before(v, total), any(p), broadcast(v)
///                            over the threads of the block; every thread must call. any() is a barrier as well
///   shared<T>()              one T for the block, contents undefined at first; the same at every call with that T
///   load(word), store(word, v)
///                            acquire and release at system scope, for words shared with the host;
///                            load_relaxed, store_relaxed order nothing
///   fetch_add_relaxed(word, v)
///                            exact at system scope, gives the value before, orders nothing; on host memory only where
///                            the device has host native atomics (style rule 12)
///   load_on_device(word), store_on_device(word, v)
///                            acquire and release among the threads of the device; store_relaxed_on_device does not
///   fetch_add_on_device(word, v)
///                            acquire and release in one, gives the value before; fetch_add_relaxed_on_device does not
///   fetch_max_relaxed_on_device(word, v)
///                            makes the word the larger of both
///   compare_exchange_relaxed_on_device(word, expected, v)
///                            writes `v` where the word holds `expected`, gives the value before, orders nothing
///   fence_device()           what this thread has seen or written comes before what it writes from now on, for the
///                            threads of the device; fence_system(): for the host as well
///   team(), team_rank(), kTeam
///                            threads of the block that run together, kTeam of them (a warp on CUDA, one on the CPU)
///   team_sync()              barrier over the team; memory written before is visible after
///   team_sum_before(v, total), team_any(p), team_ballot(p), team_or(v), team_from(v, rank)
///                            over the team; every thread of it must call
///   lowest_bit(mask)         the rank of the first thread in a ballot
///   arrive(cell), passed(cell, token)
///                            at a BarrierCell shared with the host; see there
///   store_unit(to, unit), load_unit(from)
///                            write and read a SealedUnit so that its sequence is never seen without its data; it is
///                            written again only once nobody expects that sequence any more
///   clock_ns()               the device's clock
///   pause_ns(n), relax()     called in every iteration of a loop that polls
///   relax_briefly()          the same, where what is polled takes its time anyhow
///   launch_dependents()      a launch behind this one with LaunchShape::early may begin once all blocks have called it
///
/// On the CPU a block is one thread, so sync() is nothing and the reductions are the identity.
class CpuGroup {
 public:
  static constexpr std::uint32_t kLanes = 32;

  constexpr CpuGroup() noexcept = default;
  constexpr CpuGroup(std::uint32_t block, std::uint32_t block_count, std::uint32_t item = 0,
                     std::uint32_t item_count = 1) noexcept
      : block_(block), block_count_(block_count), item_(item), item_count_(item_count) {}

  [[nodiscard]] static constexpr std::uint32_t rank() noexcept { return 0; }
  [[nodiscard]] static constexpr std::uint32_t size() noexcept { return 1; }
  [[nodiscard]] constexpr std::uint32_t block() const noexcept { return block_; }
  [[nodiscard]] constexpr std::uint32_t block_count() const noexcept { return block_count_; }
  [[nodiscard]] constexpr std::uint32_t thread() const noexcept { return block_; }
  [[nodiscard]] constexpr std::uint32_t thread_count() const noexcept { return block_count_; }
  [[nodiscard]] constexpr std::uint32_t item() const noexcept { return item_; }
  [[nodiscard]] constexpr std::uint32_t item_count() const noexcept { return item_count_; }

  static constexpr void sync() noexcept {}

  template <class T>
  [[nodiscard]] static constexpr T sum(T value) noexcept {
    return value;
  }

  /// The sum of `value` over the threads of lower rank; `total` receives the sum over all.
  template <class T>
  [[nodiscard]] static constexpr T sum_before(T value, T& total) noexcept {
    total = value;
    return T{};
  }

  /// Whether `value` holds for any thread.
  [[nodiscard]] static constexpr bool any(bool value) noexcept { return value; }

  /// The value that the thread of rank 0 passed.
  template <class T>
  [[nodiscard]] static constexpr T broadcast(T value) noexcept {
    return value;
  }

  HEADRACE_HOST_BODY
  template <class T>
  [[nodiscard]] HEADRACE_HD static T& shared() noexcept {
    static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_default_constructible_v<T>);
    return detail::thread_storage<T>();
  }

  HEADRACE_HOST_BODY
  template <class T>
  [[nodiscard]] HEADRACE_HD static T load(const T& word) noexcept {
    return std::atomic_ref<T>(const_cast<T&>(word)).load(std::memory_order_acquire);
  }

  HEADRACE_HOST_BODY
  template <class T>
  HEADRACE_HD static void store(T& word, T value) noexcept {
    std::atomic_ref<T>(word).store(value, std::memory_order_release);
  }

  template <class T>
  [[nodiscard]] HEADRACE_HD static T load_relaxed(const T& word) noexcept {
    return load(word);  // costs nothing more here
  }

  HEADRACE_HOST_BODY
  template <class T>
  HEADRACE_HD static void store_relaxed(T& word, T value) noexcept {
    std::atomic_ref<T>(word).store(value, std::memory_order_relaxed);
  }

  HEADRACE_HOST_BODY
  template <class T>
  HEADRACE_HD static T fetch_add_relaxed(T& word, T value) noexcept {
    return std::atomic_ref<T>(word).fetch_add(value, std::memory_order_relaxed);
  }

  template <class T>
  [[nodiscard]] HEADRACE_HD static T load_on_device(const T& word) noexcept {
    return load(word);
  }

  template <class T>
  HEADRACE_HD static void store_on_device(T& word, T value) noexcept {
    store(word, value);
  }

  HEADRACE_HOST_BODY
  template <class T>
  HEADRACE_HD static T fetch_add_on_device(T& word, T value) noexcept {
    return std::atomic_ref<T>(word).fetch_add(value, std::memory_order_acq_rel);
  }

  template <class T>
  HEADRACE_HD static void store_relaxed_on_device(T& word, T value) noexcept {
    store(word, value);  // what fence_device() is not: see there
  }

  template <class T>
  HEADRACE_HD static T fetch_add_relaxed_on_device(T& word, T value) noexcept {
    return fetch_add_on_device(word, value);
  }

  HEADRACE_HOST_BODY
  template <class T>
  HEADRACE_HD static void fetch_max_relaxed_on_device(T& word, T value) noexcept {
    const std::atomic_ref<T> shared(word);
    T seen = shared.load(std::memory_order_relaxed);
    while (seen < value && !shared.compare_exchange_weak(seen, value, std::memory_order_relaxed)) {
    }
  }

  HEADRACE_HOST_BODY
  template <class T>
  HEADRACE_HD static T compare_exchange_relaxed_on_device(T& word, T expected, T value) noexcept {
    std::atomic_ref<T>(word).compare_exchange_strong(expected, value, std::memory_order_relaxed);
    return expected;
  }

  HEADRACE_HD static void store_unit(SealedUnit& to, const SealedUnit& unit) noexcept {
    for (std::uint32_t i = 0; i < 3; ++i) store_relaxed(to.data[i], unit.data[i]);
    store(to.sequence, unit.sequence);
  }

  [[nodiscard]] HEADRACE_HD static SealedUnit load_unit(const SealedUnit& from) noexcept {
    SealedUnit unit{};
    unit.sequence = load(from.sequence);
    for (std::uint32_t i = 0; i < 3; ++i) unit.data[i] = load_relaxed(from.data[i]);
    return unit;
  }

  /// Nothing to do: every store of this class but store_relaxed() is a release. (ThreadSanitizer knows no fences.)
  HEADRACE_HD static void fence_system() noexcept {}
  HEADRACE_HD static void fence_device() noexcept {}

  static constexpr std::uint32_t kTeam = 1;
  [[nodiscard]] static constexpr std::uint32_t team_rank() noexcept { return 0; }
  [[nodiscard]] static constexpr std::uint32_t team() noexcept { return 0; }
  static constexpr void team_sync() noexcept {}
  template <class T>
  [[nodiscard]] static constexpr T team_sum_before(T value, T& total) noexcept {
    return sum_before(value, total);
  }
  [[nodiscard]] static constexpr bool team_any(bool value) noexcept { return value; }
  [[nodiscard]] static constexpr std::uint32_t team_ballot(bool value) noexcept { return value ? 1 : 0; }
  [[nodiscard]] static constexpr std::uint32_t team_or(std::uint32_t value) noexcept { return value; }
  template <class T>
  [[nodiscard]] static constexpr T team_from(T value, std::uint32_t /*rank*/) noexcept {
    return value;
  }
  [[nodiscard]] static constexpr std::uint32_t lowest_bit(std::uint32_t /*mask*/) noexcept { return 0; }

  /// Two arrivals make a phase; the token is the number of the phase arrived in.
  [[nodiscard]] HEADRACE_HD static std::uint64_t arrive(BarrierCell& cell) noexcept {
    return fetch_add_on_device(arrivals(cell), std::uint64_t{1}) / 2;
  }

  [[nodiscard]] HEADRACE_HD static bool passed(const BarrierCell& cell, std::uint64_t token) noexcept {
    return load(arrivals(const_cast<BarrierCell&>(cell))) / 2 > token;
  }

  HEADRACE_HOST_BODY
  [[nodiscard]] HEADRACE_HD static std::uint64_t clock_ns() noexcept {
    return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
  }

  HEADRACE_HOST_BODY
  HEADRACE_HD static void pause_ns(std::uint32_t /*most*/) noexcept { std::this_thread::yield(); }
  HEADRACE_HOST_BODY
  HEADRACE_HD static void relax_briefly() noexcept { std::this_thread::yield(); }
  HEADRACE_HOST_BODY
  HEADRACE_HD static void relax() noexcept { std::this_thread::yield(); }

  static constexpr void launch_dependents() noexcept {}

 private:
  [[nodiscard]] HEADRACE_HD static std::uint64_t& arrivals(BarrierCell& cell) noexcept {
    return *reinterpret_cast<std::uint64_t*>(cell.storage);
  }

  std::uint32_t block_ = 0;
  std::uint32_t block_count_ = 1;
  std::uint32_t item_ = 0;
  std::uint32_t item_count_ = 1;
};

}  // namespace headrace
