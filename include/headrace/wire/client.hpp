#pragma once

// A wire::Client asks a Server of another process on the same machine through shared memory: no query needs a system
// call while both sides are busy.
//
//     auto ask = [](std::span<const std::byte> query) {
//       headrace::wire::Client client("shm://answers/light");
//       std::vector<std::byte> answer(client.answer_bytes());
//       client.ask(query, answer).or_throw("asking");
//       return answer;
//     };

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/base/detail/clock.hpp"
#include "headrace/base/result.hpp"
#include "headrace/serve/client.hpp"
#include "headrace/wire/detail/tensor.hpp"

namespace headrace::wire {

/// One thread's way to a model of a server in another process of this machine and user: a ring of slots in memory that
/// it shares with that server alone. The calls are those of serve::Client, and mean the same; used by one thread at a
/// time. Every query submitted comes back exactly once: also where the server ends or hangs, see below.
///
/// Once the server has ended, is about to stop, or has another model under the name, what it has not answered comes
/// back with Errc::stopped, and so does each later submit(); why_ended() says which of these it was. A new Client may
/// find a new server. A query with a deadline comes back by then whatever the server does.
class Client {
 public:
  /// Queries in flight of a client that does not ask for a number, or as many as the server allows where that is less.
  static constexpr std::uint32_t kSlots = 256;

  /// Connects to "shm://NAME/MODEL", or "shm://NAME" where the server has one model.
  /// @param slots  queries that may be in flight; a power of two, at most ServerConfig::shm_slots_max; 0: see kSlots
  /// Throws UsageError for another URL and for a model that the server does not have, SystemError where there is no
  /// such server (Errc::not_found), it does not answer for 10 s, or it has no room (Errc::full).
  explicit Client(std::string_view url, std::uint32_t slots = 0);
  Client(Client&& other) noexcept;
  Client& operator=(Client&& other) noexcept;
  /// Leaves at once: the server drops what has not been answered.
  ~Client();

  [[nodiscard]] std::size_t query_bytes() const noexcept;
  [[nodiscard]] std::size_t answer_bytes() const noexcept;
  /// How Python shows queries and answers, as serve::Operator has it; empty for bytes.
  [[nodiscard]] const std::string& query_type() const noexcept;
  [[nodiscard]] const std::string& answer_type() const noexcept;
  /// The model's name and version.
  [[nodiscard]] const std::string& model() const noexcept;
  [[nodiscard]] const std::string& version() const noexcept;
  /// The parts of a query that have a name and a type.
  [[nodiscard]] const std::vector<Tensor>& inputs() const noexcept;
  [[nodiscard]] std::uint32_t slots() const noexcept;

  /// As serve::Client::submit(). Errc::full when slots() queries are in flight, not yet polled, or late and not yet
  /// answered; Errc::stopped once the server serves this client no more. Never blocks.
  [[nodiscard]] Result<serve::Ticket> submit(std::span<const std::byte> query,
                                             serve::SubmitOptions options = {}) noexcept;
  [[nodiscard]] Result<std::size_t> submit_many(std::span<const std::byte> queries,
                                                serve::SubmitOptions options = {}) noexcept;

  /// As serve::Client::poll(): calls `done(const serve::Completion&)` for what has come back, at most `most`; how many.
  template <class Done>
  std::size_t poll(Done done, std::size_t most = 64) {
    std::size_t count = 0;
    serve::Completion back;
    for (; count < most && take(back); ++count) {
      done(back);
      release();
    }
    return count;
  }
  /// As serve::Client::wait(): whether `ticket` has come back, unless `limit` passes first.
  [[nodiscard]] Result<bool> wait(serve::Ticket ticket, Duration limit = Duration::max()) noexcept;
  /// Submits one query and waits for its answer, which is copied. Only while nothing else is in flight.
  [[nodiscard]] Status ask(std::span<const std::byte> query, std::span<std::byte> answer,
                           serve::SubmitOptions options = {}) noexcept;
  /// Asks for a query not to be answered. If the server has not taken it up it comes back with Errc::cancelled.
  void cancel(serve::Ticket ticket) noexcept;

  /// Ends the connection: the server drops what it has not answered, which comes back here with Errc::stopped.
  void leave() noexcept;

  /// For event loops: a descriptor that is readable once the server has said something after watch(), and when it has
  /// ended. Call take_notice() then. It stays the same, and is closed by the client's end.
  /// Throws SystemError where the process has no descriptor left.
  [[nodiscard]] int descriptor();
  /// Asks the server to say once when a query comes back. False where one has come back already: nothing is asked then.
  /// What comes back by its deadline is given up by poll(), see soonest_deadline(), without a word of the server.
  [[nodiscard]] bool watch() noexcept;
  /// Asks the server to say nothing.
  void forget_watch() noexcept;
  /// Takes in what makes descriptor() readable; whether there was anything.
  bool take_notice() noexcept;
  /// No query in flight has an earlier deadline; Time::max() where none has one.
  [[nodiscard]] Time soonest_deadline() const noexcept;

  /// The oldest query not yet polled; with none in flight, the next to be submitted.
  [[nodiscard]] serve::Ticket oldest() const noexcept;
  /// Queries submitted and not yet polled.
  [[nodiscard]] std::size_t in_flight() const noexcept;

  /// Whether the server serves this client no more, as far as has been noticed: within 1 ms by a poll() that finds
  /// nothing, and at once by wait().
  [[nodiscard]] bool ended() const noexcept;
  /// Why, in a sentence; empty while it serves.
  [[nodiscard]] const std::string& why_ended() const noexcept;

  /// Whether this process is a forked child of the one that made this client: nothing works here then.
  [[nodiscard]] bool inherited() const noexcept;
  /// Throws Exception where it is.
  void require_own_process() const;

 private:
  struct State;
  /// The next query that has come back; it stays as it is until release().
  [[nodiscard]] bool take(serve::Completion& back) noexcept;
  void release() noexcept;

  std::unique_ptr<State> state_;
};

}  // namespace headrace::wire
