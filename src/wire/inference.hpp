#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "headrace/base/detail/clock.hpp"
#include "headrace/base/result.hpp"
#include "headrace/wire/detail/request_trace.hpp"
#include "wire/memory_share.hpp"
#include "wire/served_model.hpp"
#include "wire/shared_region.hpp"

namespace headrace::wire {

/// An output that a request wants.
struct WantedOutput {
  const Tensor* tensor = nullptr;
  bool binary = false;
  SharedRange range = {};  ///< Where it goes, instead of into the reply.
};

class Asker;
struct Inference;

/// Whoever waits for inferences.
class InferenceOwner {
 public:
  /// Every query of `inference` has come back. Called by Asker::take_in().
  virtual void finished(Inference& inference) = 0;

 protected:
  ~InferenceOwner() = default;
};

/// The queries of one request, and their answers, whichever way they came in.
struct Inference {
  explicit Inference(ThreadBudget& budget) noexcept : memory(budget) {}
  explicit Inference(MemoryShare share) noexcept : memory(std::move(share)) { (void)memory.resize(0); }

  ServedModel* served = nullptr;
  Protocol protocol = Protocol::http;  ///< By which it came in.
  Priority priority = Priority::normal;
  const void* client = nullptr;    ///< The connection by which it came in: clients take turns. Only compared.
  MemoryShare memory;              ///< Queries and answers take it, and may outlive the client's connection.
  std::string id;                  ///< The client's own; comes back.
  std::size_t batch = 0;           ///< Queries.
  std::vector<std::byte> queries;  ///< `batch` of them, one behind the other.
  std::vector<std::byte> answers;  ///< Likewise.
  std::vector<WantedOutput> outputs;
  Time deadline = Time::max();
  Time arrived{};       ///< When the request's first byte had come.
  Time began{};         ///< When the request had been read.
  Time submitted_at{};  ///< When the last queries went to the engine.
  Time back_at{};       ///< When the thread had all answers.
  Status status;        ///< Why there are no answers: the first query's that has none.

  std::optional<TraceParent> trace;  ///< Where it is to be traced.
  InferenceOwner* owner = nullptr;   ///< Null once nobody waits any more.

  std::size_t submitted = 0;  ///< Queries that an engine has taken, or that will have no answer.
  std::size_t back = 0;       ///< Queries that have come back.

  /// As a new one, but for room that vectors have.
  void reset() noexcept {
    std::vector<std::byte> kept_queries = std::move(queries);
    std::vector<std::byte> kept_answers = std::move(answers);
    std::vector<WantedOutput> kept_outputs = std::move(outputs);
    kept_queries.clear();
    kept_answers.clear();
    kept_outputs.clear();
    MemoryShare kept_memory = std::move(memory);
    std::destroy_at(this);
    std::construct_at(this, std::move(kept_memory));
    queries = std::move(kept_queries);
    answers = std::move(kept_answers);
    outputs = std::move(kept_outputs);
  }
  /// Notes why a query has no answer.
  void fail(Error error) noexcept {
    if (status.ok()) status = error;
  }
};

}  // namespace headrace::wire
