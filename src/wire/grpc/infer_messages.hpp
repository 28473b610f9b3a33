#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "wire/inference.hpp"
#include "wire/inference_pool.hpp"
#include "wire/shared_regions.hpp"

namespace headrace::wire::grpc {

/// The model that a client names. Throws RequestError (404) where there is none, or not in that version.
/// @param version  empty for any
[[nodiscard]] ServedModel& find_model(const Models& models, std::string_view name, std::string_view version);

/// Reads a ModelInferRequest of the Open Inference Protocol, whose tensors are `contents` or raw_input_contents.
/// @param regions  of shared memory, which tensors may name instead
/// @param pool     for the inference
/// Throws RequestError with a message for the client where it cannot be answered. `owner` is left alone.
[[nodiscard]] std::shared_ptr<Inference> read_infer_request(const Models& models, std::string_view message,
                                                            const SharedRegions& regions, InferencePool& pool);

/// The id of a ModelInferRequest; empty where it has none or is no message.
[[nodiscard]] std::string_view id_of(std::string_view message) noexcept;

/// The ModelInferResponse with the answers of an inference, in raw_output_contents.
class InferResponse {
 public:
  /// @param inference  outlives it
  explicit InferResponse(const Inference& inference);
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  /// Writes it behind what `out` has.
  void put(std::string& out) const;

 private:
  const Inference& inference_;
  std::string head_;  ///< All but the tensors.
  std::size_t bytes_ = 0;
};

}  // namespace headrace::wire::grpc
