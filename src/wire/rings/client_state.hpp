#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/file_descriptor.hpp"
#include "headrace/base/detail/process.hpp"
#include "headrace/serve/detail/late_queries.hpp"
#include "headrace/wire/client.hpp"
#include "wire/rings/handshake.hpp"
#include "wire/rings/layout.hpp"
#include "wire/rings/shared_memory.hpp"

namespace headrace::wire {

/// What a client knows of its ring. Nothing that the server writes is an index.
struct Client::State {
  struct Giving;
  /// What the client keeps of a query for itself.
  struct Slot {
    std::uint64_t tag = 0;
    Time deadline = Time::max();
    std::uint64_t given_up = 0;  ///< Position + 1 of the query that came back at its deadline.
  };

  /// Whether the answer at `position` may be read.
  [[nodiscard]] bool answered(std::uint64_t position) const noexcept {
    return rings::word(view.answer_words(position).sequence).load(std::memory_order_acquire) == position + 1;
  }
  /// Whether the query has come back.
  [[nodiscard]] bool back(std::uint64_t position) const noexcept { return settled(position) || given_up(position); }
  // What LateQueries asks of a lane.
  [[nodiscard]] bool settled(std::uint64_t position) const noexcept { return ended || answered(position); }
  [[nodiscard]] Slot& slot(std::uint64_t position) noexcept { return own[position & (own.size() - 1)]; }
  [[nodiscard]] const Slot& slot(std::uint64_t position) const noexcept { return own[position & (own.size() - 1)]; }
  [[nodiscard]] Time deadline(std::uint64_t position) const noexcept { return slot(position).deadline; }
  [[nodiscard]] bool given_up(std::uint64_t position) const noexcept { return slot(position).given_up == position + 1; }
  void give_up(std::uint64_t position) noexcept { slot(position).given_up = position + 1; }

  /// Gives back the slots that nobody uses any more.
  void free_slots() noexcept {
    if (late.keeps()) [[unlikely]]
      late.catch_up(*this, taken, next);
  }
  [[nodiscard]] bool full() const noexcept { return next - late.freed(taken) >= own.size(); }
  /// Puts a query into the next slot.
  void put(std::span<const std::byte> query, const serve::SubmitOptions& options) noexcept;
  /// Tells the server of what has been put.
  void publish() noexcept;
  /// Takes in what is on the socket: the end, or bytes that woke this side. Whether there was anything.
  bool look() noexcept;
  /// look(), and whether the server's process has died.
  bool look_at_other() noexcept;
  /// Waits until something is on the socket; whether the server's process has died.
  [[nodiscard]] bool await_other(Duration timeout) noexcept;
  /// The server serves this client no more.
  void end() noexcept;
  /// Takes both descriptors out of `for_loops`, which would stay readable once the server has ended.
  void unwatch() noexcept;
  /// The same as look(), where the last look was a while ago: for those who find nothing.
  void look_sometimes() noexcept;
  /// Sleeps until something comes on the socket or `until`, unless `ticket` is back already.
  void sleep(std::uint64_t ticket, Time until) noexcept;

  Birth birth;
  FileDescriptor socket;
  FileDescriptor process;    ///< The server's, see rings::process_of().
  FileDescriptor for_loops;  ///< An epoll instance of both, for event loops; made when it is first asked for.
  rings::SharedMemory memory;
  rings::View view;
  rings::Welcome welcome;
  std::vector<Slot> own;
  std::uint64_t next = 0;   ///< The next position to submit.
  std::uint64_t taken = 0;  ///< The oldest not yet polled.
  serve::detail::LateQueries late;
  bool took_late = false;  ///< The query that take() has given out is one that was given up.
  Time looked_at{};
  bool ended = false;
  std::string why{};
};

}  // namespace headrace::wire
