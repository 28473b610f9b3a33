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

/// Makes an inference out of what a request says, whichever way the request is written: checks names, types, shapes and
/// sizes, and puts tensors together to queries. Every method throws RequestError, with a message for the client, where
/// the request cannot be answered.
class InferBuilder {
 public:
  /// @param pool    for the inference
  InferBuilder(ServedModel& served, InferencePool& pool);

  /// An input: the tensor that it is. What it holds comes next, by add_elements().
  /// @param shape  with the dimension of the batch in front; those that no shape can have are -1
  const Tensor& add_input(std::string_view name, std::string_view type, std::span<const std::int64_t> shape);
  /// Bytes of the input that was added last.
  [[nodiscard]] std::size_t input_bytes() const noexcept { return inference_->batch * seen_.back()->bytes(); }
  /// Refuses another number of bytes than the input that was added last has.
  void require_bytes(std::uint64_t bytes) const;
  /// What the input that was added last holds.
  void add_elements(std::span<const std::byte> elements);
  void add_elements(const SharedRange& elements);
  /// @param range  where it goes, instead of into the reply; with no region for the reply
  void add_output(std::string_view name, bool binary, SharedRange range = {});
  void set_id(std::string_view id) { inference_->id = id; }
  /// @param microseconds  from now on; 0: no limit
  void set_timeout(std::uint64_t microseconds);

  /// @param level  see priority_of()
  void set_priority(std::uint64_t level) { inference_->priority = priority_of(level); }

  /// The inference, once all inputs have been added. Without an output all are wanted.
  /// @param binary  how outputs are wanted that have not been added
  [[nodiscard]] std::shared_ptr<Inference> finish(bool binary);

 private:
  void make_room(std::size_t batch);
  /// The rows of the input that was added last.
  [[nodiscard]] Rows<std::byte> input_rows();
  void check_input_flags();

  std::shared_ptr<Inference> inference_;
  std::vector<const Tensor*> seen_;  ///< Inputs that have been added.
};

/// Throws RequestError for a parameter, of a request or a tensor, by which clients ask for an extension of the protocol
/// that the server does not offer.
void check_parameter(std::string_view name);
/// Throws RequestError for a parameter that is one of tensors, where a whole request has it.
void refuse_of_request(std::string_view name);

}  // namespace headrace::wire
