#include "headrace/device/detail/mailbox.hpp"

#include "headrace/device/detail/resident_kernel.hpp"

namespace headrace {

Mailbox::Mailbox(Device device, std::uint32_t box_count, std::size_t request_bytes, std::size_t answer_bytes,
                 std::uint32_t blocks)
    : Boxes(device, box_count, request_bytes, answer_bytes, blocks, 2) {
  static_cast<BoxesView&>(view_) = boxes_;
  view_.posted = extra_words(0);
  view_.answered = extra_words(1);
}

std::uint32_t Mailbox::post(std::uint32_t box) noexcept {
  std::uint32_t sequence = posted(box) + 1;  // this thread is its only writer
  if (sequence == MailboxView::kStopped) sequence = 0;
  // pairs with MailboxView::wait
  ResidentKernel::tell(const_cast<std::uint32_t&>(view_.posted[box * MailboxView::kWordStride]), sequence);
  return sequence;
}

bool Mailbox::ready(std::uint32_t box) const noexcept {
  // pairs with MailboxView::reply
  return ResidentKernel::heard(view_.answered[box * MailboxView::kWordStride]) == posted(box);
}

std::uint32_t Mailbox::posted(std::uint32_t box) const noexcept {
  return ResidentKernel::heard(view_.posted[box * MailboxView::kWordStride]);
}

}  // namespace headrace
