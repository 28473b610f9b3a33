#include "wire/infer_builder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <initializer_list>
#include <string>
#include <utility>

#include "wire/request_error.hpp"

namespace headrace::wire {

namespace {

constexpr std::uint64_t kTimeoutMax = 3'600'000'000;  // microseconds
constexpr std::size_t kShownMax = 8;                  // most dimensions of a wrong shape that a message shows

const Tensor& find(const std::vector<Tensor>& tensors, std::string_view name, std::string_view kind,
                   const ServedModel& served) {
  const auto found = std::ranges::find(tensors, name, &Tensor::name);
  if (found == tensors.end()) refuse(fmt::format("model {} has no {} \"{}\"", served.model.name, kind, name));
  return *found;
}

/// The number of queries according to an input's shape.
std::size_t batch_of(std::span<const std::int64_t> shape, const Tensor& tensor, std::int64_t batch_max) {
  const bool right = shape.size() == tensor.shape.size() + 1 && shape[0] >= 1 && shape[0] <= batch_max &&
                     std::equal(tensor.shape.begin(), tensor.shape.end(), shape.begin() + 1);
  if (right) return static_cast<std::size_t>(shape[0]);
  refuse(fmt::format("input \"{}\" has the shape [{}{}], but needs [N{}{}] with N from 1 to {}", tensor.name,
                     fmt::join(shape.first(std::min(shape.size(), kShownMax)), ", "),
                     shape.size() > kShownMax ? ", ..." : "", tensor.shape.empty() ? "" : ", ",
                     fmt::join(tensor.shape, ", "), batch_max));
}

}  // namespace

InferBuilder::InferBuilder(ServedModel& served, InferencePool& pool) : inference_(pool.take()) {
  inference_->served = &served;
}

const Tensor& InferBuilder::add_input(std::string_view name, std::string_view type,
                                      std::span<const std::int64_t> shape) {
  const Model& model = inference_->served->model;
  const Tensor& tensor = find(model.inputs, name, "input", *inference_->served);
  if (std::ranges::find(seen_, &tensor) != seen_.end()) refuse(fmt::format("input \"{}\" appears twice", name));
  if (type != to_string(tensor.type)) {
    refuse(fmt::format("input \"{}\" has the type {}, but needs {}", name, type, to_string(tensor.type)));
  }
  const std::size_t batch = batch_of(shape, tensor, model.batch_max);
  if (seen_.empty()) {
    make_room(batch);
  } else if (batch != inference_->batch) {
    refuse(fmt::format("input \"{}\" has {} queries, but another input has {}", name, batch, inference_->batch));
  }
  seen_.push_back(&tensor);
  return tensor;
}

void InferBuilder::require_bytes(std::uint64_t bytes) const {
  if (bytes == input_bytes()) return;
  refuse(fmt::format("input \"{}\" has {} bytes, but its shape takes {}", seen_.back()->name, bytes, input_bytes()));
}

void InferBuilder::add_elements(std::span<const std::byte> elements) {
  require_bytes(elements.size());
  const Rows<std::byte> rows = input_rows();
  for (std::size_t i = 0; i < rows.count; ++i) {
    std::memcpy(rows.first + i * rows.stride, elements.data() + i * rows.bytes, rows.bytes);
  }
  check_input_flags();
}

void InferBuilder::add_elements(const SharedRange& elements) {
  require_bytes(elements.bytes);
  elements.region->read(elements.offset, input_rows());
  check_input_flags();
}

Rows<std::byte> InferBuilder::input_rows() {
  const Tensor& tensor = *seen_.back();
  return {.first = inference_->queries.data() + tensor.offset,
          .count = inference_->batch,
          .bytes = tensor.bytes(),
          .stride = inference_->queries.size() / inference_->batch};
}

void InferBuilder::check_input_flags() {
  const Tensor& tensor = *seen_.back();
  if (tensor.type != DataType::boolean) return;
  const Rows<std::byte> rows = input_rows();
  for (std::size_t i = 0; i < rows.count; ++i) {
    const std::span row(rows.first + i * rows.stride, rows.bytes);
    if (std::ranges::any_of(row, [](std::byte element) { return element > std::byte{1}; })) {
      refuse(fmt::format("input \"{}\" has a BOOL that is neither 0 nor 1", tensor.name));
    }
  }
}

void InferBuilder::add_output(std::string_view name, bool binary, SharedRange range) {
  const Tensor& tensor = find(inference_->served->model.outputs, name, "output", *inference_->served);
  if (std::ranges::find(inference_->outputs, &tensor, &WantedOutput::tensor) != inference_->outputs.end()) {
    refuse(fmt::format("output \"{}\" is requested twice", name));
  }
  inference_->outputs.push_back({&tensor, binary, std::move(range)});
}

void InferBuilder::set_timeout(std::uint64_t microseconds) {
  if (microseconds == 0) return;
  const auto limit = SteadyClock::now() + std::chrono::microseconds(std::min(microseconds, kTimeoutMax));
  inference_->deadline = std::min(inference_->deadline, limit);
}

std::shared_ptr<Inference> InferBuilder::finish(bool binary) {
  const Model& model = inference_->served->model;
  for (const Tensor& tensor : model.inputs) {
    if (std::ranges::find(seen_, &tensor) == seen_.end()) {
      refuse(fmt::format("the request has no input \"{}\"", tensor.name));
    }
  }
  if (inference_->outputs.empty()) {
    for (const Tensor& tensor : model.outputs) inference_->outputs.push_back({&tensor, binary});
  }
  for (const WantedOutput& output : inference_->outputs) {
    const std::size_t bytes = inference_->batch * output.tensor->bytes();
    if (output.range.region == nullptr || output.range.bytes >= bytes) continue;
    refuse(fmt::format("output \"{}\" has {} bytes of shared memory, but needs {}", output.tensor->name,
                       output.range.bytes, bytes));
  }
  inference_->began = SteadyClock::now();
  return std::move(inference_);
}

void check_parameter(std::string_view name) {
  for (const std::string_view extension : {"sequence_id", "sequence_start", "sequence_end", "classification"}) {
    if (name != extension) continue;
    refuse(fmt::format("the parameter \"{}\" belongs to an extension that this server does not offer", name));
  }
}

void refuse_of_request(std::string_view name) {
  if (!name.starts_with("shared_memory_")) return;
  refuse(fmt::format("the parameter \"{}\" is allowed only for inputs and outputs", name));
}

void InferBuilder::make_room(std::size_t batch) {
  const serve::Operator& op = inference_->served->model.engine->op();
  if (!inference_->memory.resize(batch * (op.query_bytes + op.answer_bytes))) {
    throw RequestError(kUnavailable, "the server has no memory left for this request; try again later");
  }
  inference_->batch = batch;
  inference_->queries.resize(batch * op.query_bytes);
  inference_->answers.resize(batch * op.answer_bytes);
}

}  // namespace headrace::wire
