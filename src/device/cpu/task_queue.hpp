#pragma once

#include <cstddef>
#include <cstdint>

#include "headrace/base/detail/bytes.hpp"
#include "headrace/device/kernel.hpp"
#include "headrace/device/stream.hpp"

namespace headrace::detail {

class Strand;
class EventTime;
class ResidentLaunch;
class CpuMemory;

enum class TaskKind : std::uint32_t {
  copy,
  copy_many,
  fill,
  launch,
  resident,
  call,
  stamp,
  wait,
  free,
  next_chunk,  ///< Not work: the queue goes on in the next chunk.
};

/// The head of every task. Tasks are plain data of any length, written once and run where they lie.
struct Task {
  TaskKind kind;
  std::uint32_t bytes;  ///< Bytes of the whole task, a multiple of TaskQueue::kAlignment.
};

struct CopyTask : Task {
  Copy copy;
};
struct CopyManyTask : Task {
  std::uint64_t count;  ///< Copies that follow this head.
};
struct FillTask : Task {
  void* to;
  std::size_t size;
  unsigned char value;
};
struct LaunchTask : Task {
  Kernel::CpuEntry entry;
  std::uint32_t items;
  std::uint32_t argument_count;
  std::uint32_t argument_offsets[kKernelArgumentsMax];  ///< From the start of the task.
};
struct ResidentTask : Task {
  ResidentLaunch* launch;
};
struct CallTask : Task {
  void (*function)(void*);
  void* argument;
};
/// Takes the time for record number `number` of an event.
struct StampTask : Task {
  EventTime* time;  ///< A holding.
  std::uint64_t number;
};
/// Done when `strand` has done `sequence` tasks.
struct WaitTask : Task {
  Strand* strand;  ///< A holding.
  std::uint64_t sequence;
};
struct FreeTask : Task {
  CpuMemory* memory;
  void* data;
  std::size_t size;
};

/// A first-in, first-out queue of tasks of different lengths in chunks of memory that are reused, so that a queue
/// which has reached its greatest length allocates no more. Tasks do not move. push(), reserve(), drop_chunk() and
/// rewind() are called under the strand's lock; front() and pop() by the strand's owner alone, and only after it has
/// learnt (by acquiring the count of tasks) that there is a task.
class TaskQueue {
 public:
  static constexpr std::size_t kAlignment = 64;
  static constexpr std::size_t kChunkBytes = 64 * kKiB;
  /// The longest task; leaves room for the mark that ends a chunk.
  static constexpr std::size_t kTaskBytesMax = kChunkBytes - kAlignment;

  TaskQueue() noexcept = default;
  TaskQueue(const TaskQueue&) = delete;
  TaskQueue& operator=(const TaskQueue&) = delete;
  ~TaskQueue();

  /// Room for a task, its head filled in; null when there is no memory.
  template <class T>
  [[nodiscard]] T* push(TaskKind kind, std::size_t bytes = sizeof(T)) noexcept {
    bytes = align_up(bytes, kAlignment);
    if ((tail_ == nullptr || tail_used_ + bytes > kTaskBytesMax) && !extend()) return nullptr;
    T* task = reinterpret_cast<T*>(tail_->data + tail_used_);
    tail_used_ += bytes;
    task->kind = kind;
    task->bytes = static_cast<std::uint32_t>(bytes);
    return task;
  }
  /// Makes sure that pushes which need up to `chunks` more chunks succeed; false when there is no memory.
  [[nodiscard]] bool reserve(std::size_t chunks) noexcept;

  /// The oldest task, which may be the mark next_chunk: then drop_chunk() comes first.
  [[nodiscard]] Task& front() noexcept { return *reinterpret_cast<Task*>(head_->data + head_used_); }
  void pop() noexcept { head_used_ += front().bytes; }
  /// Goes on in the next chunk and keeps the one left behind for later.
  void drop_chunk() noexcept;
  /// An empty queue starts again at the front of its chunk, which the cache still holds.
  void rewind() noexcept { head_used_ = tail_used_ = 0; }

 private:
  struct alignas(kAlignment) Chunk {
    std::byte data[kChunkBytes];
    Chunk* next;
  };

  [[nodiscard]] static Chunk* allocate() noexcept;
  [[nodiscard]] bool extend() noexcept;
  static void destroy(Chunk* chunk) noexcept;

  Chunk* head_ = nullptr;
  std::size_t head_used_ = 0;
  Chunk* tail_ = nullptr;
  std::size_t tail_used_ = 0;
  Chunk* free_ = nullptr;
};

}  // namespace headrace::detail
