#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>

#include "wire/inference.hpp"
#include "wire/inference_pool.hpp"
#include "wire/shared_regions.hpp"

namespace headrace::wire {

/// The most JSON that one request or reply holds; larger tensors come in binary.
inline constexpr std::size_t kJsonBytesMax = 4 << 20;

/// Reads a request for inference as the Open Inference Protocol writes it.
/// @param json     the object with "inputs"
/// @param tensors  the bytes of the inputs that have "binary_data_size", one behind the other
/// @param regions  of shared memory, which tensors may name instead
/// @param pool     for the inference
/// Throws RequestError with a message for the client where `served` cannot answer it. `owner` is left alone.
[[nodiscard]] std::shared_ptr<Inference> read_infer_request(ServedModel& served, std::string_view json,
                                                            std::span<const std::byte> tensors,
                                                            const SharedRegions& regions, InferencePool& pool);

}  // namespace headrace::wire
