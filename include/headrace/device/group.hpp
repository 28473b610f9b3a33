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
#define HEADRACE_HOST_BODY _Pragma("nv_exec_check_disable")
#else
/// Marks a function that is compiled for the host and, under nvcc, for the device as well.
#define HEADRACE_HD
/// Precedes a HEADRACE_HD function that HEADRACE_HD templates call and that only ever runs on the host.
#define HEADRACE_HOST_BODY
#endif

namespace headrace {

/// Twelve bytes and the sequence number that makes them valid, written and read as one. Data that fits in a few units
/// needs neither a fence nor a flag.
struct alignas(16) SealedUnit {
  static constexpr std::uint32_t kDataBytes = 12;  ///< Bytes of `data`.
  std::uint32_t data[3];                           ///< The data; its meaning is up to the writer.
  std::uint32_t sequence;                          ///< Which data it is, by agreement of both sides.
};

namespace detail {

/// One T for each host thread. A separate function, because nvcc allows no thread_local where it may see device code.
/// Threads that use a large T allocate it: thread-local storage lies in every thread's stack, which could not hold all
/// large ones.
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

/// Memory of a barrier at which one host thread and one thread of a kernel meet repeatedly: a
/// cuda::barrier<thread_scope_system> on a CUDA device, a count of arrivals on a CPU device. Everything that a side
/// wrote before it arrived is visible to the other once the barrier has been passed.
struct alignas(64) BarrierCell {
  std::byte storage[64];  ///< Only arrive() and passed() of a group may access it.
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
///                            exact at system scope, gives the value before, orders nothing; on host memory only if
///                            the device has DeviceProperties::host_native_atomics
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
///                            overwritten only once no reader expects that sequence any more
///   multiprocessor()         the number of the multiprocessor that runs this block; 0 on the CPU
///   clock_ns()               the device's clock
///   pause_ns(n), relax()     called in every iteration of a loop that polls
///   relax_briefly()          the same, if reading the polled memory is slow already
///   launch_dependents()      a launch behind this one with LaunchShape::early may begin once all blocks have called it
///
/// On the CPU a block is one thread, so sync() does nothing and the reductions are the identity.
class CpuGroup {
 public:
  /// Consecutive indices that one thread should take at once, for SIMD.
  static constexpr std::uint32_t kLanes = 32;

  /// The only block of a launch of one item.
  constexpr CpuGroup() noexcept = default;
  /// Block `block` of the `block_count` that share item `item` of `item_count`.
  constexpr CpuGroup(std::uint32_t block, std::uint32_t block_count, std::uint32_t item = 0,
                     std::uint32_t item_count = 1) noexcept
      : block_(block), block_count_(block_count), item_(item), item_count_(item_count) {}

  [[nodiscard]] static constexpr std::uint32_t rank() noexcept { return 0; }  ///< This thread within its block.
  [[nodiscard]] static constexpr std::uint32_t size() noexcept { return 1; }  ///< Threads of a block.
  /// This block among those that share the item.
  [[nodiscard]] constexpr std::uint32_t block() const noexcept { return block_; }
  /// Blocks that share the item.
  [[nodiscard]] constexpr std::uint32_t block_count() const noexcept { return block_count_; }
  /// This thread among all threads of the item.
  [[nodiscard]] constexpr std::uint32_t thread() const noexcept { return block_; }
  /// Threads of all blocks of the item.
  [[nodiscard]] constexpr std::uint32_t thread_count() const noexcept { return block_count_; }
  /// The item of the launch that this block works on.
  [[nodiscard]] constexpr std::uint32_t item() const noexcept { return item_; }
  /// Items of the launch.
  [[nodiscard]] constexpr std::uint32_t item_count() const noexcept { return item_count_; }

  /// Barrier over the block; memory written before is visible after.
  static constexpr void sync() noexcept {}

  /// The sum of `value` over the threads of the block, for all of them.
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

  /// One T for the block, the same at every call with that T; its contents are undefined at first.
  HEADRACE_HOST_BODY
  template <class T>
  [[nodiscard]] HEADRACE_HD static T& shared() noexcept {
    static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_default_constructible_v<T>);
    return detail::thread_storage<T>();
  }

  /// Reads a word shared with the host, acquire at system scope.
  HEADRACE_HOST_BODY
  template <class T>
  [[nodiscard]] HEADRACE_HD static T load(const T& word) noexcept {
    return std::atomic_ref<T>(const_cast<T&>(word)).load(std::memory_order_acquire);
  }

  /// Writes a word shared with the host, release at system scope.
  HEADRACE_HOST_BODY
  template <class T>
  HEADRACE_HD static void store(T& word, T value) noexcept {
    std::atomic_ref<T>(word).store(value, std::memory_order_release);
  }

  /// Reads a word shared with the host, and orders nothing.
  template <class T>
  [[nodiscard]] HEADRACE_HD static T load_relaxed(const T& word) noexcept {
    return load(word);  // acquire costs nothing more here
  }

  /// Writes a word shared with the host, and orders nothing.
  HEADRACE_HOST_BODY
  template <class T>
  HEADRACE_HD static void store_relaxed(T& word, T value) noexcept {
    std::atomic_ref<T>(word).store(value, std::memory_order_relaxed);
  }

  /// Adds to a word shared with the host, and orders nothing; returns the value before.
  HEADRACE_HOST_BODY
  template <class T>
  HEADRACE_HD static T fetch_add_relaxed(T& word, T value) noexcept {
    return std::atomic_ref<T>(word).fetch_add(value, std::memory_order_relaxed);
  }

  /// Reads a word shared by threads of the device, acquire.
  template <class T>
  [[nodiscard]] HEADRACE_HD static T load_on_device(const T& word) noexcept {
    return load(word);
  }

  /// Writes a word shared by threads of the device, release.
  template <class T>
  HEADRACE_HD static void store_on_device(T& word, T value) noexcept {
    store(word, value);
  }

  /// Adds to a word shared by threads of the device, acquire and release; returns the value before.
  HEADRACE_HOST_BODY
  template <class T>
  HEADRACE_HD static T fetch_add_on_device(T& word, T value) noexcept {
    return std::atomic_ref<T>(word).fetch_add(value, std::memory_order_acq_rel);
  }

  /// Writes a word shared by threads of the device; orders nothing without a fence.
  template <class T>
  HEADRACE_HD static void store_relaxed_on_device(T& word, T value) noexcept {
    store(word, value);  // a release, because fence_device() does nothing here
  }

  /// Adds to a word shared by threads of the device; returns the value before. Orders nothing without a fence.
  template <class T>
  HEADRACE_HD static T fetch_add_relaxed_on_device(T& word, T value) noexcept {
    return fetch_add_on_device(word, value);
  }

  /// Raises a word shared by threads of the device to `value` if it is smaller; orders nothing.
  HEADRACE_HOST_BODY
  template <class T>
  HEADRACE_HD static void fetch_max_relaxed_on_device(T& word, T value) noexcept {
    const std::atomic_ref<T> shared(word);
    T seen = shared.load(std::memory_order_relaxed);
    while (seen < value && !shared.compare_exchange_weak(seen, value, std::memory_order_relaxed)) {
    }
  }

  /// Writes `value` if the word holds `expected`; returns the value before. Orders nothing.
  HEADRACE_HOST_BODY
  template <class T>
  HEADRACE_HD static T compare_exchange_relaxed_on_device(T& word, T expected, T value) noexcept {
    std::atomic_ref<T>(word).compare_exchange_strong(expected, value, std::memory_order_relaxed);
    return expected;
  }

  /// Writes a unit so that no reader sees its sequence without its data.
  HEADRACE_HD static void store_unit(SealedUnit& to, const SealedUnit& unit) noexcept {
    for (std::uint32_t i = 0; i < 3; ++i) store_relaxed(to.data[i], unit.data[i]);
    store(to.sequence, unit.sequence);
  }

  /// Reads a unit: its data is valid if its sequence is the expected one.
  [[nodiscard]] HEADRACE_HD static SealedUnit load_unit(const SealedUnit& from) noexcept {
    SealedUnit unit{};
    unit.sequence = load(from.sequence);
    for (std::uint32_t i = 0; i < 3; ++i) unit.data[i] = load_relaxed(from.data[i]);
    return unit;
  }

  /// Orders what this thread has seen or written before what it writes next, for all devices and the host. Does nothing
  /// here: every store of this class but store_relaxed() is a release. (ThreadSanitizer knows no fences.)
  HEADRACE_HD static void fence_system() noexcept {}
  /// fence_system() for the threads of the device only.
  HEADRACE_HD static void fence_device() noexcept {}

  /// Threads of a team, which run together: a warp on CUDA.
  static constexpr std::uint32_t kTeam = 1;
  /// This thread within its team.
  [[nodiscard]] static constexpr std::uint32_t team_rank() noexcept { return 0; }
  /// This team within its block.
  [[nodiscard]] static constexpr std::uint32_t team() noexcept { return 0; }
  /// Barrier over the team; memory written before is visible after.
  static constexpr void team_sync() noexcept {}
  /// As sum_before(), over the team.
  template <class T>
  [[nodiscard]] static constexpr T team_sum_before(T value, T& total) noexcept {
    return sum_before(value, total);
  }
  /// Whether `value` holds for any thread of the team.
  [[nodiscard]] static constexpr bool team_any(bool value) noexcept { return value; }
  /// A mask of the threads of the team for which `value` holds, by team_rank().
  [[nodiscard]] static constexpr std::uint32_t team_ballot(bool value) noexcept { return value ? 1 : 0; }
  /// The bitwise OR of `value` over the team.
  [[nodiscard]] static constexpr std::uint32_t team_or(std::uint32_t value) noexcept { return value; }
  /// The value that the thread of that team_rank() passed.
  template <class T>
  [[nodiscard]] static constexpr T team_from(T value, std::uint32_t /*rank*/) noexcept {
    return value;
  }
  /// The lowest team_rank() in a mask that is not 0.
  [[nodiscard]] static constexpr std::uint32_t lowest_bit(std::uint32_t /*mask*/) noexcept { return 0; }

  /// Arrives at the barrier, and returns the token of the phase: two arrivals, one of either side, complete it.
  [[nodiscard]] HEADRACE_HD static std::uint64_t arrive(BarrierCell& cell) noexcept {
    return fetch_add_on_device(arrivals(cell), std::uint64_t{1}) / 2;
  }

  /// Whether the phase of that token is complete.
  [[nodiscard]] HEADRACE_HD static bool passed(const BarrierCell& cell, std::uint64_t token) noexcept {
    return load(arrivals(const_cast<BarrierCell&>(cell))) / 2 > token;
  }

  /// The multiprocessor that runs this block.
  [[nodiscard]] static constexpr std::uint32_t multiprocessor() noexcept { return 0; }

  /// The device's clock, in nanoseconds since an arbitrary moment.
  HEADRACE_HOST_BODY
  [[nodiscard]] HEADRACE_HD static std::uint64_t clock_ns() noexcept {
    return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
  }

  /// Pauses a polling thread for up to `most` nanoseconds.
  HEADRACE_HOST_BODY
  HEADRACE_HD static void pause_ns(std::uint32_t /*most*/) noexcept { std::this_thread::yield(); }
  /// relax() for polled memory that is slow enough to limit the polling by itself.
  HEADRACE_HOST_BODY
  HEADRACE_HD static void relax_briefly() noexcept { std::this_thread::yield(); }
  /// Call it in every iteration of a polling loop.
  HEADRACE_HOST_BODY
  HEADRACE_HD static void relax() noexcept { std::this_thread::yield(); }

  /// Lets the next launch begin early, see LaunchShape::early.
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
