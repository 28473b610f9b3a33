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

/// A client's state of its ring. It never uses a value that the server writes as an index.
struct Client::State {
  struct Giving;
  /// The client's private data about a query.
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
  // Interface that LateQueries expects of a lane.
  [[nodiscard]] bool settled(std::uint64_t position) const noexcept { return ended || answered(position); }
  [[nodiscard]] Slot& slot(std::uint64_t position) noexcept { return own[position & (own.size() - 1)]; }
  [[nodiscard]] const Slot& slot(std::uint64_t position) const noexcept { return own[position & (own.size() - 1)]; }
  [[nodiscard]] Time deadline(std::uint64_t position) const noexcept { return slot(position).deadline; }
  [[nodiscard]] bool given_up(std::uint64_t position) const noexcept { return slot(position).given_up == position + 1; }
  void give_up(std::uint64_t position) noexcept { slot(position).given_up = position + 1; }

  /// Frees the slots that are no longer in use.
  void free_slots() noexcept {
    if (late.keeps()) [[unlikely]]
      late.catch_up(*this, taken, next);
  }
  [[nodiscard]] bool full() const noexcept { return next - late.freed(taken) >= own.size(); }
  /// Puts a query into the next slot.
  void put(std::span<const std::byte> query, const serve::SubmitOptions& options) noexcept;
  /// Makes the queries put so far visible to the server, and wakes it if it sleeps.
  void publish() noexcept;
  /// Reads the socket: wake-up bytes, the server's last message, or the end. Returns whether there was anything.
  bool look() noexcept;
  /// Calls look(), and checks whether the server's process has died. Returns whether anything happened.
  bool look_at_other() noexcept;
  /// Waits until the socket is readable. Returns whether the server's process has died.
  [[nodiscard]] bool await_other(Duration timeout) noexcept;
  /// Marks the connection as ended: the server no longer serves this client.
  void end() noexcept;
  /// Removes both descriptors from `for_loops`, which would otherwise stay readable after the server's end.
  void unwatch() noexcept;
  /// Calls look_at_other() if the last call was a while ago. For callers that found no answer.
  void look_sometimes() noexcept;
  /// Sleeps until the socket is readable or `until`, unless `ticket` is back already.
  void sleep(std::uint64_t ticket, Time until) noexcept;

  Birth birth;
  FileDescriptor socket;
  FileDescriptor process;    ///< The server's process, see rings::process_of().
  FileDescriptor for_loops;  ///< An epoll instance of both descriptors, for event loops; created on first use.
  rings::SharedMemory memory;
  rings::View view;
  rings::Welcome welcome;
  std::vector<Slot> own;
  std::uint64_t next = 0;   ///< The next position to submit.
  std::uint64_t taken = 0;  ///< The oldest position not yet polled.
  serve::detail::LateQueries late;
  bool took_late = false;  ///< The query that take() returned last is one that was given up.
  Time looked_at{};
  bool ended = false;
  std::string why{};
};

}  // namespace headrace::wire
