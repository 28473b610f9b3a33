#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>

#include "wire/inference.hpp"
#include "wire/inference_pool.hpp"
#include "wire/shared_regions.hpp"

namespace headrace::wire {

/// Most bytes of JSON in a request or reply; larger tensors must be binary.
inline constexpr std::size_t kJsonBytesMax = 4 << 20;

/// Reads an inference request in the JSON format of the Open Inference Protocol.
/// @param json     the object with "inputs"
/// @param tensors  the concatenated bytes of the inputs with "binary_data_size"
/// @param regions  shared memory that tensors may be in instead
/// @param pool     provides the inference
/// Throws RequestError with a message for the client if `served` cannot answer it. Does not set `owner`.
[[nodiscard]] std::shared_ptr<Inference> read_infer_request(ServedModel& served, std::string_view json,
                                                            std::span<const std::byte> tensors,
                                                            const SharedRegions& regions, InferencePool& pool);

}  // namespace headrace::wire
