#include "wire/infer_reply.hpp"

#include <fmt/format.h>

#include <iterator>
#include <nlohmann/json.hpp>
#include <span>
#include <vector>

#include "wire/asker.hpp"
#include "wire/json_elements.hpp"
#include "wire/request_error.hpp"

namespace headrace::wire {

namespace {

using nlohmann::json;

std::string json_text(std::string_view text) { return json(text).dump(-1, ' ', false, json::error_handler_t::replace); }

std::string_view reason(Error error) {
  switch (error.code) {
    case Errc::full:
      return error.native == kWaitsTooLong ? "the queries that wait for this model take longer than the request's "
                                             "timeout or the model's bound; try again later"
                                           : "too many queries wait for this model; try again later";
    case Errc::deadline_exceeded: return "the request's timeout or the model's bound passed before it was answered";
    case Errc::stopped: return "the model has been stopped";
    case Errc::hung: return "the model hangs and no longer answers";
    case Errc::device_fault: return "the model's device failed and no longer answers";
    default: return to_string(error.code);
  }
}

}  // namespace

void gather(const Inference& inference, const Tensor& tensor, std::string& bytes) {
  const std::size_t stride = inference.answers.size() / inference.batch;
  const std::size_t row = tensor.bytes();
  for (std::size_t i = 0; i < inference.batch; ++i) {
    bytes.append(reinterpret_cast<const char*>(inference.answers.data()) + i * stride + tensor.offset, row);
  }
}

void write_shared_outputs(const Inference& inference) {
  for (const WantedOutput& output : inference.outputs) {
    if (output.range.region == nullptr) continue;
    output.range.region->write(output.range.offset, {.first = inference.answers.data() + output.tensor->offset,
                                                     .count = inference.batch,
                                                     .bytes = output.tensor->bytes(),
                                                     .stride = inference.answers.size() / inference.batch});
  }
}

void require_answers(const Inference& inference) {
  if (inference.status.ok()) return;
  const Error error = inference.status.error();
  throw RequestError(http_status(error), fmt::format("model {}: {}", inference.served->model.name, reason(error)));
}

InferReply write_infer_reply(const Inference& inference) {
  const Model& model = inference.served->model;
  require_answers(inference);
  write_shared_outputs(inference);
  InferReply reply;
  std::string& text = reply.body;
  text = fmt::format(R"({{"model_name":{},"model_version":{})", json_text(model.name), json_text(model.version));
  if (!inference.id.empty()) text += fmt::format(R"(,"id":{})", json_text(inference.id));
  text += R"(,"outputs":[)";
  std::string tensors;
  for (const WantedOutput& output : inference.outputs) {
    const Tensor& tensor = *output.tensor;
    if (&output != inference.outputs.data()) text += ',';
    fmt::format_to(std::back_inserter(text), R"({{"name":{},"datatype":"{}","shape":[{}{}{}])", json_text(tensor.name),
                   to_string(tensor.type), inference.batch, tensor.shape.empty() ? "" : ",",
                   fmt::join(tensor.shape, ","));
    if (output.range.region != nullptr) {
      fmt::format_to(
          std::back_inserter(text),
          R"(,"parameters":{{"shared_memory_region":{},"shared_memory_offset":{},"shared_memory_byte_size":{}}})",
          json_text(output.range.region->name()), output.range.offset, inference.batch * tensor.bytes());
    } else if (output.binary) {
      fmt::format_to(std::back_inserter(text), R"(,"parameters":{{"binary_data_size":{}}})",
                     inference.batch * tensor.bytes());
      gather(inference, tensor, tensors);
      reply.json_bytes = 0;
    } else {
      std::string rows;
      gather(inference, tensor, rows);
      text += R"(,"data":)";
      write_elements(std::as_bytes(std::span(rows)), tensor, text);
    }
    text += '}';
  }
  text += "]}";
  if (reply.json_bytes) {
    reply.json_bytes = text.size();
    text += tensors;
  }
  return reply;
}

int http_status(Error error) noexcept {
  switch (error.code) {
    case Errc::invalid_argument: return kBadRequest;
    case Errc::full: return kTooManyRequests;
    case Errc::out_of_memory:
    case Errc::stopped:
    case Errc::hung:
    case Errc::device_fault: return kUnavailable;
    case Errc::deadline_exceeded: return kTimedOut;
    default: return kInternalError;
  }
}

std::string error_body(std::string_view message) { return fmt::format(R"({{"error":{}}})", json_text(message)); }

}  // namespace headrace::wire
