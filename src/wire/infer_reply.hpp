#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "wire/inference.hpp"

namespace headrace::wire {

/// A body, and how much of it is JSON where binary tensors follow.
struct InferReply {
  std::string body;
  std::optional<std::size_t> json_bytes;
};

/// Writes the answers of an inference as the Open Inference Protocol has them, and outputs into shared memory. Throws
/// RequestError where it has none, or where JSON cannot write them.
[[nodiscard]] InferReply write_infer_reply(const Inference& inference);

/// Appends the rows of an output, one behind the other.
void gather(const Inference& inference, const Tensor& tensor, std::string& bytes);

/// Writes the outputs that go into shared memory there. Throws RequestError where that cannot be done.
void write_shared_outputs(const Inference& inference);

/// Throws RequestError where an inference has no answers.
void require_answers(const Inference& inference);

/// The status of HTTP for a query that came back without an answer.
[[nodiscard]] int http_status(Error error) noexcept;

/// {"error": "..."}
[[nodiscard]] std::string error_body(std::string_view message);

}  // namespace headrace::wire
