#include "headrace/device/mailbox.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>

#include "headrace/base/bytes.hpp"
#include "headrace/base/error.hpp"

namespace headrace {

namespace {

/// Payloads of different boxes share no line, and start where any type may.
constexpr std::size_t kPayloadAlignment = 256;
constexpr std::size_t kWordsPerBox = MailboxView::kWordStride;

std::uint32_t checked_count(std::uint32_t box_count) {
  if (box_count == 0) throw UsageError("a mailbox needs at least one box");
  return box_count;
}

/// Bytes of the words: posted, answered and heartbeats of every box, and the stop word.
std::size_t words_bytes(std::uint32_t box_count) {
  return (3 * std::size_t{checked_count(box_count)} + 1) * kWordsPerBox * sizeof(std::uint32_t);
}

std::size_t stride(std::size_t payload_bytes) {
  return align_up(std::max<std::size_t>(payload_bytes, 1), kPayloadAlignment);
}

std::uint32_t load(const std::uint32_t& word, std::memory_order order) noexcept {
  return std::atomic_ref<std::uint32_t>(const_cast<std::uint32_t&>(word)).load(order);
}

}  // namespace

Mailbox::Mailbox(Device device, std::uint32_t box_count, std::size_t request_bytes, std::size_t answer_bytes)
    : words_(device, MemoryKind::mapped, words_bytes(box_count)),
      requests_(device, MemoryKind::mapped, stride(request_bytes) * box_count),
      answers_(device, MemoryKind::mapped, stride(answer_bytes) * box_count) {
  auto* words = words_.as<std::uint32_t>();
  std::fill_n(words, words_.bytes() / sizeof(std::uint32_t), 0U);
  const std::size_t column = std::size_t{box_count} * kWordsPerBox;
  view_.box_count = box_count;
  view_.request_stride = stride(request_bytes);
  view_.answer_stride = stride(answer_bytes);
  view_.requests = requests_.data();
  view_.answers = answers_.data();
  view_.posted = words;
  view_.answered = words + column;
  view_.heartbeats = words + 2 * column;
  view_.stop = words + 3 * column;
}

std::byte* Mailbox::request(std::uint32_t box) noexcept { return requests_.data() + box * view_.request_stride; }

std::uint32_t Mailbox::post(std::uint32_t box) noexcept {
  std::uint32_t& word = words_.as<std::uint32_t>()[box * kWordsPerBox];
  std::uint32_t sequence = load(word, std::memory_order_relaxed) + 1;  // this thread is its only writer
  if (sequence == MailboxView::kStopped) sequence = 0;
  std::atomic_ref<std::uint32_t>(word).store(sequence, std::memory_order_release);  // pairs with MailboxView::wait
  return sequence;
}

bool Mailbox::ready(std::uint32_t box) const noexcept {
  const std::uint32_t posted = load(view_.posted[box * kWordsPerBox], std::memory_order_relaxed);
  return load(view_.answered[box * kWordsPerBox], std::memory_order_acquire) == posted;  // pairs with reply()
}

const std::byte* Mailbox::answer(std::uint32_t box) const noexcept { return view_.answer(box); }

void Mailbox::stop() noexcept {
  std::atomic_ref<std::uint32_t>(const_cast<std::uint32_t&>(*view_.stop)).store(1, std::memory_order_release);
}

std::uint32_t Mailbox::heartbeat(std::uint32_t box) const noexcept {
  return load(view_.heartbeats[box * kWordsPerBox], std::memory_order_acquire);
}

}  // namespace headrace
