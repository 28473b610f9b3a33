#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "headrace/base/detail/bytes.hpp"

/// Rings in memory that a server shares with one client of another process (docs/decisions/0098).
namespace headrace::wire::rings {

/// Incremented with every change of the memory's layout or of the messages on the socket.
inline constexpr std::uint32_t kRingAbi = 1;
inline constexpr std::uint32_t kSlotsMost = 1U << 16;

/// Layout of the memory of one client. Both sides compute it from the same numbers.
struct Layout {
  std::uint32_t slots = 0;  ///< A power of two.
  std::uint64_t query_bytes = 0;
  std::uint64_t answer_bytes = 0;

  static constexpr std::size_t kLine = 64;
  static constexpr std::size_t kPage = 4096;
  static constexpr std::size_t kQueryOffset = 32;   ///< Offset of a query in its slot, after QueryWords.
  static constexpr std::size_t kAnswerOffset = 16;  ///< Offset of an answer in its slot, after AnswerWords.

  [[nodiscard]] std::size_t query_stride() const noexcept { return align_up(kQueryOffset + query_bytes, kLine); }
  [[nodiscard]] std::size_t answer_stride() const noexcept { return align_up(kAnswerOffset + answer_bytes, kLine); }
  [[nodiscard]] std::size_t answers_at() const noexcept { return kPage + slots * query_stride(); }
  [[nodiscard]] std::size_t bytes() const noexcept { return align_up(answers_at() + slots * answer_stride(), kPage); }
};

/// The first page: which side sleeps, and the counts that prevent lost wake-ups. As in Parking, a side that has
/// published something stores its count and then loads the other side's flag. A side that goes to sleep stores its
/// flag, then loads the other side's count, and checks once more. All four accesses are sequentially consistent, so
/// that at least one side sees the other's store.
struct HeadWords {
  alignas(kNoSharing) std::uint64_t published;      ///< Queries that the client has published. Written by the client.
  alignas(kNoSharing) std::uint32_t client_sleeps;  ///< 1: the client wants a wake-up byte. The server clears it.
  alignas(kNoSharing) std::uint64_t answered;       ///< Answers that the server has written. Written by the server.
  alignas(kNoSharing) std::uint32_t server_sleeps;  ///< 1: the server wants a wake-up byte. The client clears it.
};
static_assert(sizeof(HeadWords) <= Layout::kPage);

/// Precedes a query. Written by the client.
struct QueryWords {
  std::uint64_t sequence;   ///< The query's position + 1, once it may be read.
  std::int64_t deadline;    ///< Deadline on the monotonic clock, which processes share; the greatest value means none.
  std::uint64_t cancelled;  ///< The position + 1 of a query that the client no longer wants.
  std::uint64_t unused;
};
static_assert(sizeof(QueryWords) == Layout::kQueryOffset);

/// Precedes an answer. Written by the server.
struct AnswerWords {
  std::uint64_t sequence;  ///< The query's position + 1, once the answer may be read.
  std::uint32_t status;    ///< 0 for an answer, otherwise 1 + the Errc.
  std::int32_t native;     ///< Error::native.
};
static_assert(sizeof(AnswerWords) == Layout::kAnswerOffset);

/// A word that two processes share.
template <class T>
[[nodiscard]] std::atomic_ref<T> word(T& in_memory) noexcept {
  static_assert(std::atomic_ref<T>::is_always_lock_free);
  return std::atomic_ref<T>(in_memory);
}

/// A view of one client's memory, for either side. It never uses values that the other side writes as indices or
/// lengths.
class View {
 public:
  View() noexcept = default;
  View(std::byte* memory, const Layout& layout) noexcept
      : memory_(memory),
        mask_(layout.slots - 1),
        query_stride_(layout.query_stride()),
        answer_stride_(layout.answer_stride()),
        answers_at_(layout.answers_at()) {}

  [[nodiscard]] HeadWords& head() const noexcept { return *reinterpret_cast<HeadWords*>(memory_); }
  [[nodiscard]] QueryWords& query_words(std::uint64_t position) const noexcept {
    return *reinterpret_cast<QueryWords*>(query_slot(position));
  }
  [[nodiscard]] std::byte* query(std::uint64_t position) const noexcept {
    return query_slot(position) + Layout::kQueryOffset;
  }
  [[nodiscard]] AnswerWords& answer_words(std::uint64_t position) const noexcept {
    return *reinterpret_cast<AnswerWords*>(answer_slot(position));
  }
  [[nodiscard]] std::byte* answer(std::uint64_t position) const noexcept {
    return answer_slot(position) + Layout::kAnswerOffset;
  }

 private:
  [[nodiscard]] std::byte* query_slot(std::uint64_t position) const noexcept {
    return memory_ + Layout::kPage + (position & mask_) * query_stride_;
  }
  [[nodiscard]] std::byte* answer_slot(std::uint64_t position) const noexcept {
    return memory_ + answers_at_ + (position & mask_) * answer_stride_;
  }

  std::byte* memory_ = nullptr;
  std::uint64_t mask_ = 0;
  std::size_t query_stride_ = 0;
  std::size_t answer_stride_ = 0;
  std::size_t answers_at_ = 0;
};

}  // namespace headrace::wire::rings
