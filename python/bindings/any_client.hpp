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

/// A client of an engine of this process, or of one in another process, through shared memory.
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
  /// The types as NumPy has them.
  [[nodiscard]] nanobind::object query_dtype() const;
  [[nodiscard]] nanobind::object answer_dtype() const;
  /// Why queries that have never been admitted never will be.
  [[nodiscard]] Errc refusal() const {
    const std::optional<Error> fault = engine_ != nullptr ? engine_->fault() : std::nullopt;
    return fault ? fault->code : Errc::stopped;
  }
  /// Throws why a query was not taken.
  [[noreturn]] void throw_refused(const char* doing, Error error) const;
  /// Throws what became of a query without an answer.
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
  /// Queries that may be in flight.
  [[nodiscard]] std::size_t slots() const { return engine_ != nullptr ? engine_->plan().slots : remote().slots(); }
  /// A descriptor that an event loop has to watch besides the one of wake(); -1 where there is none.
  [[nodiscard]] int descriptor() { return engine_ != nullptr ? -1 : remote().descriptor(); }
  /// Has `descriptor`, or the one above, signalled once when a query comes back. False where one may have come back
  /// already, and neither will be.
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
  /// Whether the descriptor above had been signalled.
  [[nodiscard]] bool take_signal() noexcept { return engine_ == nullptr && remote().take_notice(); }
  /// Whether poll() runs operators in the thread that calls it.
  [[nodiscard]] bool answers_itself() const noexcept {
    return engine_ != nullptr && std::get<serve::Client>(client_).answers_itself();
  }
  /// Has the oldest `most` queries answered where that is for the caller to do, and releases the GIL meanwhile. poll()
  /// then finds them.
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

  std::shared_ptr<serve::Engine> engine_;  ///< Null for another process's. Kept running as long as it has clients.
  std::variant<serve::Client, wire::Client> client_;
};

/// The client of a server of another process, with as many slots; see wire::Client. Called under the GIL, which it
/// releases meanwhile.
[[nodiscard]] AnyClient connect_to(const std::string& url, std::uint32_t slots);

}  // namespace headrace::python
