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
  next_chunk,  ///< Not a task: the queue continues in the next chunk.
};

/// The header of every task. Tasks are plain data of any length, written once and run in place.
struct Task {
  TaskKind kind;
  std::uint32_t bytes;  ///< Bytes of the whole task, a multiple of TaskQueue::kAlignment.
};

struct CopyTask : Task {
  Copy copy;
};
struct CopyManyTask : Task {
  std::uint64_t count;  ///< Copies that follow this header.
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
  EventTime* time;  ///< A reference.
  std::uint64_t number;
};
/// A task that is done once `strand` has done `sequence` tasks.
struct WaitTask : Task {
  Strand* strand;  ///< A reference.
  std::uint64_t sequence;
};
struct FreeTask : Task {
  CpuMemory* memory;
  void* data;
  std::size_t size;
};

/// A FIFO queue of tasks of different lengths. It reuses its chunks of memory, so a queue that has reached its greatest
/// length no longer allocates. Tasks do not move. push(), reserve(), drop_chunk() and rewind() need the strand's lock.
/// Only the strand's owner calls front() and pop(), and only after an acquire load of the task count has shown that
/// there is a task.
class TaskQueue {
 public:
  static constexpr std::size_t kAlignment = 64;
  static constexpr std::size_t kChunkBytes = 64 * kKiB;
  /// Bytes of the longest task, which leaves room for the mark that ends a chunk.
  static constexpr std::size_t kTaskBytesMax = kChunkBytes - kAlignment;

  TaskQueue() noexcept = default;
  TaskQueue(const TaskQueue&) = delete;
  TaskQueue& operator=(const TaskQueue&) = delete;
  ~TaskQueue();

  /// Returns room for a task, with its header filled in. Null if there is no memory.
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
  /// Ensures that pushes that need up to `chunks` more chunks succeed. False if there is no memory.
  [[nodiscard]] bool reserve(std::size_t chunks) noexcept;

  /// The oldest task. It may be the mark next_chunk; then call drop_chunk() first.
  [[nodiscard]] Task& front() noexcept { return *reinterpret_cast<Task*>(head_->data + head_used_); }
  void pop() noexcept { head_used_ += front().bytes; }
  /// Continues in the next chunk and keeps the previous one for reuse.
  void drop_chunk() noexcept;
  /// Restarts an empty queue at the front of its chunk, which is still in the cache.
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
