#pragma once

#include <atomic>
#include <cstdint>
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

namespace detail {

/// One T for each host thread. A function of its own, because nvcc allows no thread_local where it may see device code.
template <class T>
[[nodiscard]] T& thread_storage() noexcept {
  static thread_local T storage;
  return storage;
}

}  // namespace detail

/// What a kernel sees of the threads that run it. Kernel logic is a template over this interface, so that one
/// function runs on either device:
///
///   rank(), size()           this thread among the threads of its block
///   block(), block_count()   this block among the blocks that share the item
///   thread(), thread_count() this thread among all threads of all blocks of the item
///   item(), item_count()     which of the independent items of this launch is being worked on
///   kLanes                   consecutive indices that one thread should take at once (SIMD on the CPU, 1 on CUDA)
///   sync()                   barrier over the block; memory written before is visible after
///   sum(v), sum_before(v, total), broadcast(v)   over the threads of the block; every thread must call
///   shared<T>()              one T for the block, contents undefined at first; every call with the same T gives the
///   same load(word), store(word, v)                   acquire and release at system scope, for words shared with the
///   host relax()                  called in every iteration of a loop that polls
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

  HEADRACE_HOST_BODY
  HEADRACE_HD static void relax() noexcept { std::this_thread::yield(); }

 private:
  std::uint32_t block_ = 0;
  std::uint32_t block_count_ = 1;
  std::uint32_t item_ = 0;
  std::uint32_t item_count_ = 1;
};

}  // namespace headrace
