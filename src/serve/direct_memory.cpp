#include "serve/direct_memory.hpp"

#include <atomic>
#include <bit>
#include <cstring>

namespace headrace::serve::detail {

namespace {

constexpr std::size_t kSlotAlignment = 64;

std::uint32_t answer_stride(const Operator& op) {
  const std::size_t bytes = op.answer_bytes <= kSealedBytesMax
                                ? sealed_units(static_cast<std::uint32_t>(op.answer_bytes)) * sizeof(SealedUnit)
                                : op.answer_bytes;
  return static_cast<std::uint32_t>(align_up(bytes, kSlotAlignment));
}

Buffer zeroed(Device device, MemoryKind kind, std::size_t bytes) {
  Buffer buffer(device, kind, bytes);
  std::memset(buffer.data(), 0, bytes);
  return buffer;
}

/// Words of all tails and of the stop word after them.
std::size_t tail_words(const Plan& plan) { return (std::size_t{plan.clients_max} + 1) * DispatchView::kTailStride; }

/// tail_words() plus those of the heartbeat.
std::size_t control_words(const Plan& plan) { return tail_words(plan) + DispatchView::kTailStride; }

bool sealed(const Operator& op) { return op.answer_bytes <= kSealedBytesMax; }

}  // namespace

DirectMemory::DirectMemory(Device device, const Plan& plan, const Operator& op)
    : answers_itself_(plan.schedule == Schedule::none) {
  const std::size_t slots = std::size_t{plan.clients_max} * plan.slots;
  view_.lane_count = plan.clients_max;
  view_.slots = plan.slots;
  view_.query_bytes = static_cast<std::uint32_t>(op.query_bytes);
  view_.answer_bytes = static_cast<std::uint32_t>(op.answer_bytes);
  view_.query_stride = static_cast<std::uint32_t>(align_up(op.query_bytes, kSlotAlignment));
  view_.answer_stride = answer_stride(op);
  view_.blocks = plan.shape(op.shape).blocks;
  view_.sample_every = answers_itself_ || plan.sample_stages_every == 0 ? 0 : std::bit_ceil(plan.sample_stages_every);
  queries_ = zeroed(device, plan.host_memory, slots * view_.query_stride);
  answers_ = zeroed(device, plan.host_memory, slots * view_.answer_stride);
  const std::size_t words = control_words(plan) + (sealed(op) ? 0 : slots);
  words_ = zeroed(device, plan.host_memory, words * sizeof(std::uint32_t));
  if (view_.sample_every != 0) stamps_ = zeroed(device, plan.host_memory, slots * sizeof(DispatchStamps));
  auto* const control = words_.as<std::uint32_t>();
  view_.queries = queries_.data();
  view_.answers = answers_.data();
  view_.tails = control;
  view_.heartbeat = control + tail_words(plan);
  view_.done = sealed(op) ? nullptr : control + control_words(plan);
  view_.stamps = stamps_.as<DispatchStamps>();
  if (!plan.answer_inline || view_.query_bytes > kStagedBytesMax) return;
  constexpr std::uint32_t kLineUnits = kNoSharing / sizeof(SealedUnit);
  view_.lone_stride = static_cast<std::uint32_t>(align_up(sealed_units(view_.query_bytes), kLineUnits));
  lone_ = zeroed(device, plan.host_memory, sizeof(SealedUnit) * plan.clients_max * view_.lone_stride);
  view_.lone = lone_.as<SealedUnit>();
}

DirectLane::Memory DirectMemory::lane(std::uint32_t index) const noexcept {
  const std::size_t first = std::size_t{index} * view_.slots;
  DirectLane::Memory memory;
  memory.queries = queries_.data() + first * view_.query_stride;
  memory.answers = answers_.data() + first * view_.answer_stride;
  memory.done = view_.done == nullptr ? nullptr : view_.done + first;
  memory.stamps = view_.stamps == nullptr ? nullptr : view_.stamps + first;
  memory.tail = words_.as<std::uint32_t>() + std::size_t{index} * DispatchView::kTailStride;
  if (view_.lone != nullptr) memory.lone = lone_.as<SealedUnit>() + std::size_t{index} * view_.lone_stride;
  memory.query_stride = view_.query_stride;
  memory.answer_stride = view_.answer_stride;
  memory.answers_itself = answers_itself_;
  return memory;
}

std::uint32_t* DirectMemory::stop_word() const noexcept {
  return words_.as<std::uint32_t>() + std::size_t{view_.lane_count} * DispatchView::kTailStride;
}

void DirectMemory::clear_control() const noexcept {
  std::atomic_ref(*view_.heartbeat).store(0, std::memory_order_relaxed);
  std::atomic_ref(*stop_word()).store(0, std::memory_order_release);
}

std::uint32_t DirectMemory::heartbeat() const noexcept {
  return std::atomic_ref(*view_.heartbeat).load(std::memory_order_relaxed);
}

}  // namespace headrace::serve::detail
