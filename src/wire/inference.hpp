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
  SharedRange range = {};  ///< Where the output goes instead of into the reply.
};

class Asker;
struct Inference;

/// The connection or stream that waits for inferences.
class InferenceOwner {
 public:
  /// Asker::take_in() calls this once every query of `inference` has come back.
  virtual void finished(Inference& inference) = 0;

 protected:
  ~InferenceOwner() = default;
};

/// The queries of one request and their answers, independent of the protocol.
struct Inference {
  explicit Inference(ThreadBudget& budget) noexcept : memory(budget) {}
  explicit Inference(MemoryShare share) noexcept : memory(std::move(share)) { (void)memory.resize(0); }

  ServedModel* served = nullptr;
  Protocol protocol = Protocol::http;  ///< The protocol of the request.
  Priority priority = Priority::normal;
  const void* client = nullptr;    ///< The connection of the request, for taking turns. Never dereferenced.
  MemoryShare memory;              ///< Memory of queries and answers, which may outlive the client's connection.
  std::string id;                  ///< The client's identifier of the request; returned in the reply.
  std::size_t batch = 0;           ///< Queries.
  std::vector<std::byte> queries;  ///< `batch` queries, concatenated.
  std::vector<std::byte> answers;  ///< Likewise.
  std::vector<WantedOutput> outputs;
  Time deadline = Time::max();
  bool is_close = false;  ///< The estimate said that it would be just in time; see Outlook.
  Time arrived{};         ///< When the request's first byte arrived.
  Time began{};           ///< When the request had been read.
  Time submitted_at{};    ///< When the last query went to the engine.
  Time back_at{};         ///< When the thread had all answers.
  Status status;          ///< Why there are no answers: the error of the first failed query.

  std::optional<TraceParent> trace;  ///< Set if the request is traced.
  InferenceOwner* owner = nullptr;   ///< Null once the owner no longer waits.

  std::size_t submitted = 0;  ///< Queries that the engine has taken, or that will get no answer.
  std::size_t back = 0;       ///< Queries that have come back.

  /// Resets the inference, but keeps the capacity of its vectors.
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
  /// Records why a query has no answer, if it is the first one.
  void fail(Error error) noexcept {
    if (status.ok()) status = error;
  }
};

}  // namespace headrace::wire
