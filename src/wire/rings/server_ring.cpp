#include "wire/rings/server_ring.hpp"

#include <cstring>

namespace headrace::wire::rings {

bool ServerRing::wake() noexcept {
  if (told_ == written_) return false;
  told_ = written_;
  HeadWords& head = view_.head();
  word(head.answered).store(written_, std::memory_order_seq_cst);  // see HeadWords
  const auto sleeps = word(head.client_sleeps);
  return sleeps.load(std::memory_order_seq_cst) != 0 && sleeps.exchange(0, std::memory_order_seq_cst) != 0;
}

void ServerRing::tell_asleep() noexcept {
  HeadWords& head = view_.head();
  word(head.server_sleeps).store(1, std::memory_order_seq_cst);  // see HeadWords
  static_cast<void>(word(head.published).load(std::memory_order_seq_cst));
}

void ServerRing::take_no_more() noexcept {
  if (last_ != UINT64_MAX) return;
  std::uint64_t end = next_;
  const auto is_published = [&](std::uint64_t position) {
    return word(view_.query_words(position).sequence).load(std::memory_order_acquire) == position + 1;
  };
  while (end - next_ < taken_.size() && !taken_[index(end)].in_flight && is_published(end)) ++end;
  last_ = end;
}

void ServerRing::write(std::uint64_t position, Status status, std::span<const std::byte> answer) noexcept {
  AnswerWords& words = view_.answer_words(position);
  if (status.ok()) {
    std::memcpy(view_.answer(position), answer.data(), answer_bytes_);
    word(words.status).store(0, std::memory_order_relaxed);
  } else {
    const Error error = status.error();
    word(words.native).store(error.native, std::memory_order_relaxed);
    word(words.status).store(1U + static_cast<std::uint32_t>(error.code), std::memory_order_relaxed);
  }
  word(words.sequence).store(position + 1, std::memory_order_release);  // pairs with Client::State::answered()
  ++written_;
}

}  // namespace headrace::wire::rings
