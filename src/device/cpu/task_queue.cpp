#include "device/cpu/task_queue.hpp"

#include <new>

#include "device/cpu/testing.hpp"

namespace headrace::detail {

TaskQueue::~TaskQueue() {
  destroy(head_);
  destroy(free_);
}

void TaskQueue::destroy(Chunk* chunk) noexcept {
  while (chunk != nullptr) {
    Chunk* next = chunk->next;
    delete chunk;
    chunk = next;
  }
}

TaskQueue::Chunk* TaskQueue::allocate() noexcept {
  if (allocation_must_fail()) return nullptr;
  Chunk* chunk = new (std::nothrow) Chunk;
  if (chunk != nullptr) chunk->next = nullptr;
  return chunk;
}

bool TaskQueue::reserve(std::size_t chunks) noexcept {
  std::size_t kept = 0;
  for (const Chunk* chunk = free_; chunk != nullptr; chunk = chunk->next) ++kept;
  for (; kept < chunks; ++kept) {
    Chunk* chunk = allocate();
    if (chunk == nullptr) return false;
    chunk->next = free_;
    free_ = chunk;
  }
  return true;
}

bool TaskQueue::extend() noexcept {
  if (free_ == nullptr && !reserve(1)) return false;
  Chunk* chunk = free_;
  free_ = chunk->next;
  chunk->next = nullptr;
  if (tail_ == nullptr) {
    head_ = chunk;
  } else {
    tail_->next = chunk;
    reinterpret_cast<Task*>(tail_->data + tail_used_)->kind = TaskKind::next_chunk;
  }
  tail_ = chunk;
  tail_used_ = 0;
  return true;
}

void TaskQueue::drop_chunk() noexcept {
  Chunk* left = head_;
  head_ = left->next;
  head_used_ = 0;
  left->next = free_;
  free_ = left;
}

}  // namespace headrace::detail
