#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>

#include "headrace/base/error.hpp"
#include "headrace/serve/engine.hpp"
#include "headrace/wire/client.hpp"

namespace headrace::python {

/// A client of an engine in this process or, through shared memory, of one in another process.
class AnyClient {
 public:
  AnyClient(std::shared_ptr<serve::Engine> engine, serve::Client client)
      : engine_(std::move(engine)), client_(std::move(client)) {}
  explicit AnyClient(wire::Client client) : client_(std::move(client)) {}

  [[nodiscard]] std::size_t query_bytes() const {
    return engine_ != nullptr ? engine_->op().query_bytes : remote().query_bytes();
  }
  [[nodiscard]] std::size_t answer_bytes() const {
    return engine_ != nullptr ? engine_->op().answer_bytes : remote().answer_bytes();
  }
  [[nodiscard]] const std::string& query_type() const {
    return engine_ != nullptr ? engine_->op().query_type : remote().query_type();
  }
  [[nodiscard]] const std::string& answer_type() const {
    return engine_ != nullptr ? engine_->op().answer_type : remote().answer_type();
  }
  /// The NumPy types of queries and answers.
  [[nodiscard]] nanobind::object query_dtype() const;
  [[nodiscard]] nanobind::object answer_dtype() const;
  /// Why queries that have not been admitted never will be.
  [[nodiscard]] Errc refusal() const {
    const std::optional<Error> fault = engine_ != nullptr ? engine_->fault() : std::nullopt;
    return fault ? fault->code : Errc::stopped;
  }
  /// Throws the reason why a query was not accepted.
  [[noreturn]] void throw_refused(const char* doing, Error error) const;
  /// Throws the reason why a query has no answer.
  [[noreturn]] void throw_unanswered(Errc code) const;

  [[nodiscard]] Result<serve::Ticket> submit(std::span<const std::byte> query, serve::SubmitOptions options) {
    return std::visit([&](auto& client) { return client.submit(query, options); }, client_);
  }
  [[nodiscard]] Result<std::size_t> submit_many(std::span<const std::byte> queries, serve::SubmitOptions options) {
    return std::visit([&](auto& client) { return client.submit_many(queries, options); }, client_);
  }
  template <class Done>
  std::size_t poll(const Done& done, std::size_t most) {
    return std::visit([&](auto& client) { return client.poll(done, most); }, client_);
  }
  [[nodiscard]] Result<bool> wait(serve::Ticket ticket, Duration limit) {
    return std::visit([&](auto& client) { return client.wait(ticket, limit); }, client_);
  }
  void cancel(serve::Ticket ticket) {
    std::visit([&](auto& client) { client.cancel(ticket); }, client_);
  }
  /// The deadline of a query that waits from now on, see serve::Client::bounded().
  [[nodiscard]] Time bounded(Time deadline) const {
    const auto* const client = std::get_if<serve::Client>(&client_);
    return client == nullptr ? deadline : client->bounded(deadline, SteadyClock::now());
  }
  /// The most queries in flight.
  [[nodiscard]] std::size_t slots() const { return engine_ != nullptr ? engine_->plan().slots : remote().slots(); }
  /// A descriptor that an event loop must watch in addition to that of wake(); -1 if there is none.
  [[nodiscard]] int descriptor() { return engine_ != nullptr ? -1 : remote().descriptor(); }
  /// Requests one signal, on `descriptor` or the one above, when a query comes back. Returns false if one may already
  /// have come back; nothing is signalled then.
  [[nodiscard]] bool wake(int descriptor) {
    if (engine_ == nullptr) return remote().watch();
    auto& client = std::get<serve::Client>(client_);
    if (client.answers_itself()) return false;
    client.wake(descriptor);
    return true;
  }
  void forget_wake() noexcept {
    if (engine_ == nullptr) return remote().forget_watch();
    std::get<serve::Client>(client_).forget_wake();
  }
  /// Whether the descriptor above was signalled.
  [[nodiscard]] bool take_signal() noexcept { return engine_ == nullptr && remote().take_notice(); }
  /// Whether poll() runs operators in the calling thread.
  [[nodiscard]] bool answers_itself() const noexcept {
    return engine_ != nullptr && std::get<serve::Client>(client_).answers_itself();
  }
  /// If the caller must answer queries itself, answers the oldest `most`, without the GIL. poll() then returns them.
  void answer(std::size_t most);
  [[nodiscard]] Time soonest_deadline() const {
    return std::visit([](const auto& client) { return client.soonest_deadline(); }, client_);
  }
  [[nodiscard]] serve::Ticket oldest() const {
    return std::visit([](const auto& client) { return client.oldest(); }, client_);
  }
  [[nodiscard]] std::size_t in_flight() const {
    return std::visit([](const auto& client) { return client.in_flight(); }, client_);
  }
  [[nodiscard]] bool inherited() const {
    return std::visit([](const auto& client) { return client.inherited(); }, client_);
  }
  void require_own_process() const {
    std::visit([](const auto& client) { client.require_own_process(); }, client_);
  }

 private:
  [[nodiscard]] const wire::Client& remote() const { return std::get<wire::Client>(client_); }
  [[nodiscard]] wire::Client& remote() { return std::get<wire::Client>(client_); }

  std::shared_ptr<serve::Engine> engine_;  ///< Null if it is in another process. Runs as long as it has clients.
  std::variant<serve::Client, wire::Client> client_;
};

/// Connects to a server in another process, with `slots` slots; see wire::Client. Called with the GIL, which it
/// releases meanwhile.
[[nodiscard]] AnyClient connect_to(const std::string& url, std::uint32_t slots);

}  // namespace headrace::python
