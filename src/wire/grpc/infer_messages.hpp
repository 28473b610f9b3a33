#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/budget.hpp"
#include "wire/inference.hpp"
#include "wire/shared_regions.hpp"

namespace headrace::wire::grpc {

/// The model that a client names. Throws RequestError (404) where there is none, or not in that version.
/// @param version  empty for any
[[nodiscard]] ServedModel& find_model(const Models& models, std::string_view name, std::string_view version);

/// Reads a ModelInferRequest of the Open Inference Protocol, whose tensors are `contents` or raw_input_contents.
/// @param regions  of shared memory, which tensors may name instead
/// @param budget   of the queries and answers
/// Throws RequestError with a message for the client where it cannot be answered. `owner` is left alone.
[[nodiscard]] std::shared_ptr<Inference> read_infer_request(const Models& models, std::string_view message,
                                                            const SharedRegions& regions, Budget& budget);

/// The id of a ModelInferRequest; empty where it has none or is no message.
[[nodiscard]] std::string_view id_of(std::string_view message) noexcept;

/// Bytes of the ModelInferResponse with the answers of an inference.
[[nodiscard]] std::size_t infer_response_bytes(const Inference& inference);
/// Writes it behind what `out` has, with raw_output_contents.
void put_infer_response(const Inference& inference, std::string& out);

}  // namespace headrace::wire::grpc
