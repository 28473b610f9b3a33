#include "headrace/device/detail/mailbox.hpp"

#include <atomic>

namespace headrace {

namespace {

constexpr std::size_t kWordsPerBox = MailboxView::kWordStride;

std::uint32_t load(const std::uint32_t& word, std::memory_order order) noexcept {
  return std::atomic_ref<std::uint32_t>(const_cast<std::uint32_t&>(word)).load(order);
}

}  // namespace

Mailbox::Mailbox(Device device, std::uint32_t box_count, std::size_t request_bytes, std::size_t answer_bytes,
                 std::uint32_t blocks)
    : Boxes(device, box_count, request_bytes, answer_bytes, blocks, 2) {
  static_cast<BoxesView&>(view_) = boxes_;
  view_.posted = extra_words(0);
  view_.answered = extra_words(1);
}

std::uint32_t Mailbox::post(std::uint32_t box) noexcept {
  std::uint32_t& word = const_cast<std::uint32_t&>(view_.posted[box * kWordsPerBox]);
  std::uint32_t sequence = load(word, std::memory_order_relaxed) + 1;  // this thread is its only writer
  if (sequence == MailboxView::kStopped) sequence = 0;
  std::atomic_ref<std::uint32_t>(word).store(sequence, std::memory_order_release);  // pairs with MailboxView::wait
  return sequence;
}

bool Mailbox::ready(std::uint32_t box) const noexcept {
  // pairs with MailboxView::reply
  return load(view_.answered[box * kWordsPerBox], std::memory_order_acquire) == posted(box);
}

std::uint32_t Mailbox::posted(std::uint32_t box) const noexcept {
  return load(view_.posted[box * kWordsPerBox], std::memory_order_relaxed);
}

}  // namespace headrace
