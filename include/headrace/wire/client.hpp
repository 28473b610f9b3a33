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

/// One thread's connection to a model of a server in another process of this machine and user: a ring of slots in
/// memory that it shares with only that server. The calls are those of serve::Client and mean the same. Used by one
/// thread at a time. Every submitted query comes back exactly once, even if the server ends or hangs, see below.
///
/// Once the server has ended, is about to stop, or serves another model under the name, unanswered queries come back
/// with Errc::stopped, and submit() returns it; why_ended() gives the reason. A new Client may find a new server. A
/// query with a deadline comes back by that time whatever the server does.
class Client {
 public:
  /// Default number of queries in flight; fewer if the server allows fewer.
  static constexpr std::uint32_t kSlots = 256;

  /// Connects to "shm://NAME/MODEL", or "shm://NAME" where the server has one model.
  /// @param slots  queries that may be in flight; a power of two, at most ServerConfig::shm_slots_max; 0: kSlots.
  ///
  /// Throws UsageError for any other URL and for a model that the server lacks, SystemError if there is no such server
  /// (Errc::not_found), it does not answer within 10 s, or it has no room (Errc::full).
  explicit Client(std::string_view url, std::uint32_t slots = 0);
  Client(Client&& other) noexcept;
  Client& operator=(Client&& other) noexcept;
  /// As leave().
  ~Client();

  /// Size of a query of the model.
  [[nodiscard]] std::size_t query_bytes() const noexcept;
  /// Size of an answer of the model.
  [[nodiscard]] std::size_t answer_bytes() const noexcept;
  /// How Python shows queries, as serve::Operator::query_type has it; empty for bytes.
  [[nodiscard]] const std::string& query_type() const noexcept;
  /// The same for answers.
  [[nodiscard]] const std::string& answer_type() const noexcept;
  /// The model's name.
  [[nodiscard]] const std::string& model() const noexcept;
  /// The model's version.
  [[nodiscard]] const std::string& version() const noexcept;
  /// The tensors that make up a query.
  [[nodiscard]] const std::vector<Tensor>& inputs() const noexcept;
  /// Most queries in flight.
  [[nodiscard]] std::uint32_t slots() const noexcept;

  /// As serve::Client::submit(). Returns Errc::full if slots() queries are in flight, not yet polled, or late and not
  /// yet answered, and Errc::stopped once ended(). Never blocks.
  [[nodiscard]] Result<serve::Ticket> submit(std::span<const std::byte> query,
                                             serve::SubmitOptions options = {}) noexcept;
  /// As serve::Client::submit_many(): submits contiguous queries and returns how many were admitted, starting with the
  /// first. Errc::stopped once ended().
  [[nodiscard]] Result<std::size_t> submit_many(std::span<const std::byte> queries,
                                                serve::SubmitOptions options = {}) noexcept;

  /// As serve::Client::poll(): calls `done(const serve::Completion&)` for at most `most` queries that have come back,
  /// and returns their number.
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
  /// As serve::Client::wait(): waits until `ticket` has come back; false if `limit` passes first.
  [[nodiscard]] Result<bool> wait(serve::Ticket ticket, Duration limit = Duration::max()) noexcept;
  /// Submits one query and waits for its answer, which is copied. Returns Errc::invalid_argument if another query is in
  /// flight or `answer` is not answer_bytes() long.
  [[nodiscard]] Status ask(std::span<const std::byte> query, std::span<std::byte> answer,
                           serve::SubmitOptions options = {}) noexcept;
  /// Requests that a query not be answered. If the server has not started on it, it comes back with Errc::cancelled.
  void cancel(serve::Ticket ticket) noexcept;

  /// Ends the connection. The server drops unanswered queries, which come back here with Errc::stopped.
  void leave() noexcept;

  /// For event loops: a descriptor that becomes readable when the server signals after watch(), or ends. Call
  /// take_notice() then. The descriptor stays the same, and the client's destructor closes it. Throws SystemError if
  /// the process has no descriptor left.
  [[nodiscard]] int descriptor();
  /// Asks the server to signal once when a query comes back. False, without asking, if one has come back already. The
  /// server does not signal deadlines: poll() notices those, see soonest_deadline().
  [[nodiscard]] bool watch() noexcept;
  /// Undoes watch().
  void forget_watch() noexcept;
  /// Reads the signal that makes descriptor() readable. False if there was none.
  bool take_notice() noexcept;
  /// The earliest deadline of the queries in flight; Time::max() if none has one.
  [[nodiscard]] Time soonest_deadline() const noexcept;

  /// The oldest query not yet polled; with none in flight, the next to be submitted.
  [[nodiscard]] serve::Ticket oldest() const noexcept;
  /// Queries submitted and not yet polled.
  [[nodiscard]] std::size_t in_flight() const noexcept;

  /// True once this client knows that the server no longer serves it. A poll() that finds nothing notices within 1 ms,
  /// and wait() at once.
  [[nodiscard]] bool ended() const noexcept;
  /// Why it ended, in a sentence; empty until then.
  [[nodiscard]] const std::string& why_ended() const noexcept;

  /// True in a forked child of the process that made this client, where it cannot be used.
  [[nodiscard]] bool inherited() const noexcept;
  /// Throws Exception if inherited().
  void require_own_process() const;

 private:
  struct State;
  /// The next query that has come back; valid until release().
  [[nodiscard]] bool take(serve::Completion& back) noexcept;
  void release() noexcept;

  std::unique_ptr<State> state_;
};

}  // namespace headrace::wire
