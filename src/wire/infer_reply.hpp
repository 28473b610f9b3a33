#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "wire/inference.hpp"

namespace headrace::wire {

/// A body, and the size of its JSON if binary tensors follow.
struct InferReply {
  std::string body;
  std::optional<std::size_t> json_bytes;
};

/// Writes the answers of an inference in the format of the Open Inference Protocol, or to shared memory. Throws
/// RequestError if the inference has no answers, or if JSON cannot represent them.
[[nodiscard]] InferReply write_infer_reply(const Inference& inference);

/// Appends the rows of an output.
void gather(const Inference& inference, const Tensor& tensor, std::string& bytes);

/// Writes outputs to shared memory, if they belong there. Throws RequestError if that fails.
void write_shared_outputs(const Inference& inference);

/// Throws RequestError if an inference has no answers.
void require_answers(const Inference& inference);

/// The HTTP status for a query that came back without an answer.
[[nodiscard]] int http_status(Error error) noexcept;

/// {"error": "..."}
[[nodiscard]] std::string error_body(std::string_view message);

}  // namespace headrace::wire
