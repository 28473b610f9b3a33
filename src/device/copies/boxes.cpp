#include "headrace/device/detail/boxes.hpp"

#include <algorithm>

#include "headrace/base/detail/bytes.hpp"
#include "headrace/base/error.hpp"
#include "headrace/device/detail/resident_kernel.hpp"

namespace headrace {

namespace {

/// Payloads of different boxes share no cache line, and their alignment suits any type.
constexpr std::size_t kPayloadAlignment = 256;
constexpr std::size_t kWordsPerBox = BoxesView::kWordStride;
constexpr std::size_t kLineBytes = kWordsPerBox * sizeof(std::uint32_t);

std::uint32_t checked_count(std::uint32_t box_count, std::uint32_t blocks) {
  if (box_count == 0) throw UsageError("a mailbox needs at least one box");
  if (blocks == 0) throw UsageError("a mailbox needs at least one block");
  return box_count;
}

/// Heartbeats and `extra` words of every box, the stop word, and the word that tells that all blocks run.
std::size_t host_lines(std::size_t box_count, std::size_t extra) { return (1 + extra) * box_count + 2; }
/// Relays and counts of finished blocks of every box, and the count of blocks that have entered.
std::size_t device_lines(std::size_t box_count) { return 2 * box_count + 1; }

std::size_t stride(std::size_t payload_bytes) {
  return align_up(std::max<std::size_t>(payload_bytes, 1), kPayloadAlignment);
}

}  // namespace

Boxes::Boxes(Device device, std::uint32_t box_count, std::size_t request_bytes, std::size_t answer_bytes,
             std::uint32_t blocks, std::uint32_t extra_words)
    : words_(device, MemoryKind::mapped, host_lines(checked_count(box_count, blocks), extra_words) * kLineBytes),
      device_words_(ResidentKernel::zeroed(device, device_lines(box_count) * kLineBytes)),
      requests_(device, MemoryKind::mapped, stride(request_bytes) * box_count),
      answers_(device, MemoryKind::mapped, stride(answer_bytes) * box_count) {
  auto* words = words_.as<std::uint32_t>();
  std::fill_n(words, words_.bytes() / sizeof(std::uint32_t), 0U);
  const std::size_t column = std::size_t{box_count} * kWordsPerBox;
  boxes_.box_count = box_count;
  boxes_.blocks = blocks;
  boxes_.request_stride = stride(request_bytes);
  boxes_.answer_stride = stride(answer_bytes);
  boxes_.requests = requests_.data();
  boxes_.answers = answers_.data();
  boxes_.heartbeats = words;
  boxes_.stop = words + (1 + extra_words) * column;
  boxes_.running = words + (1 + extra_words) * column + kWordsPerBox;
  auto* device_words = device_words_.as<std::uint32_t>();
  boxes_.relays = device_words;
  boxes_.finished = device_words + column;
  boxes_.entered = device_words + 2 * column;
}

std::uint32_t* Boxes::extra_words(std::uint32_t which) noexcept {
  return words_.as<std::uint32_t>() + (1 + std::size_t{which}) * boxes_.box_count * kWordsPerBox;
}

void Boxes::set_stop(std::uint32_t value) noexcept {
  ResidentKernel::tell(const_cast<std::uint32_t&>(*boxes_.stop), value);
}

bool Boxes::running() const noexcept { return ResidentKernel::heard(*boxes_.running) != 0; }

std::uint32_t Boxes::heartbeat(std::uint32_t box) const noexcept {
  return ResidentKernel::heard(boxes_.heartbeats[box * kWordsPerBox]);
}

}  // namespace headrace
