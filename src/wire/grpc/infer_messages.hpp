#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "wire/inference.hpp"
#include "wire/inference_pool.hpp"
#include "wire/shared_regions.hpp"

namespace headrace::wire::grpc {

/// The model that a client names. Throws RequestError (404) if it does not exist, or not in that version.
/// @param version  empty for any version
[[nodiscard]] ServedModel& find_model(const Models& models, std::string_view name, std::string_view version);

/// Reads a ModelInferRequest of the Open Inference Protocol, with tensors in `contents` or raw_input_contents.
/// @param regions  shared memory that tensors may be in instead
/// @param pool     provides the inference
/// Throws RequestError with a message for the client if the request cannot be answered. Does not set `owner`.
[[nodiscard]] std::shared_ptr<Inference> read_infer_request(const Models& models, std::string_view message,
                                                            const SharedRegions& regions, InferencePool& pool);

/// The id of a ModelInferRequest; empty if it has none or is malformed.
[[nodiscard]] std::string_view id_of(std::string_view message) noexcept;

/// The ModelInferResponse with the answers of an inference, in raw_output_contents.
class InferResponse {
 public:
  /// @param inference  outlives the response
  explicit InferResponse(const Inference& inference);
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  /// Appends the response to `out`.
  void put(std::string& out) const;

 private:
  const Inference& inference_;
  std::string head_;  ///< Everything but the tensors.
  std::size_t bytes_ = 0;
};

}  // namespace headrace::wire::grpc
