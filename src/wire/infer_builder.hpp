#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "wire/inference.hpp"
#include "wire/inference_pool.hpp"
#include "wire/memory_share.hpp"

namespace headrace::wire {

/// Builds an inference from a request of any encoding: checks names, types, shapes and sizes, and assembles queries
/// from tensors. Every method throws RequestError, with a message for the client, if the request cannot be answered.
class InferBuilder {
 public:
  /// @param pool    provides the inference
  InferBuilder(ServedModel& served, InferencePool& pool);

  /// Adds an input and returns its tensor. Its content must follow, by add_elements().
  /// @param shape  starts with the batch dimension; impossible dimensions are -1
  const Tensor& add_input(std::string_view name, std::string_view type, std::span<const std::int64_t> shape);
  /// Bytes of the input added last.
  [[nodiscard]] std::size_t input_bytes() const noexcept { return inference_->batch * seen_.back()->bytes(); }
  /// Throws unless `bytes` is the size of the input added last.
  void require_bytes(std::uint64_t bytes) const;
  /// Adds the content of the input added last.
  void add_elements(std::span<const std::byte> elements);
  void add_elements(const SharedRange& elements);
  /// @param range  where the output goes instead of into the reply; no region means the reply
  void add_output(std::string_view name, bool binary, SharedRange range = {});
  void set_id(std::string_view id) { inference_->id = id; }
  /// @param microseconds  counted from now; 0: no limit
  void set_timeout(std::uint64_t microseconds);

  /// @param level  see priority_of()
  void set_priority(std::uint64_t level) { inference_->priority = priority_of(level); }

  /// Returns the inference, once all inputs have been added. If no output was added, all are wanted.
  /// @param binary  whether outputs that were not added are wanted in binary
  [[nodiscard]] std::shared_ptr<Inference> finish(bool binary);

 private:
  void make_room(std::size_t batch);
  /// The rows of the input added last.
  [[nodiscard]] Rows<std::byte> input_rows();
  void check_input_flags();

  std::shared_ptr<Inference> inference_;
  std::vector<const Tensor*> seen_;  ///< Inputs that have been added.
};

/// Throws RequestError for a parameter of a request or tensor that asks for a protocol extension that the server does
/// not offer.
void check_parameter(std::string_view name);
/// Throws RequestError for a parameter of a whole request that is allowed only for tensors.
void refuse_of_request(std::string_view name);

}  // namespace headrace::wire
