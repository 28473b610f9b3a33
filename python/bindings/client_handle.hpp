#pragma once

#include <nanobind/nanobind.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>

#include "answer_type.hpp"
#include "any_client.hpp"
#include "arrays.hpp"

namespace headrace::python {

/// Queries that have come back, in the order of Client::poll(), as arrays with one entry or row for each.
struct Completions {
  std::size_t count = 0;
  nanobind::object tickets;
  nanobind::object tags;
  nanobind::object status;
  nanobind::object answers;
};

/// The Python form of a Client: it can be closed, takes arrays, and detects use by two threads at once.
class ClientHandle {
 public:
  explicit ClientHandle(AnyClient client);

  [[nodiscard]] std::uint64_t submit(nanobind::handle query, std::uint64_t tag, std::optional<double> deadline);
  [[nodiscard]] std::size_t submit_many(nanobind::handle queries, std::uint64_t tag, std::optional<double> deadline);
  [[nodiscard]] Completions poll(std::size_t most);
  [[nodiscard]] bool wait(std::uint64_t ticket, std::optional<double> timeout);
  [[nodiscard]] nanobind::object ask(nanobind::handle query, std::optional<double> deadline);
  [[nodiscard]] nanobind::tuple ask_many(nanobind::handle queries, std::optional<double> deadline);
  void cancel(std::uint64_t ticket);
  [[nodiscard]] std::size_t in_flight();
  [[nodiscard]] std::uint64_t oldest();
  /// The NumPy types of a query and of an answer.
  [[nodiscard]] nanobind::object query_dtype();
  [[nodiscard]] nanobind::object answer_dtype();
  /// Waits for queries in flight, drops them, and releases the lane.
  void close();

 private:
  class Use;
  struct Batch;
  void run(Batch& batch);
  void take(Batch& batch);
  /// Asks all of `queries` and waits. The caller provides room for each answer and status.
  void ask_all(nanobind::handle queries, std::optional<double> deadline, std::uint8_t* answers, std::uint8_t* status);

  std::optional<AnyClient> client_;
  std::size_t query_bytes_;
  std::size_t answer_bytes_;
  AnswerType answer_type_;
  std::atomic<bool> busy_{false};
};

}  // namespace headrace::python
