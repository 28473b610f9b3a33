#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "headrace/base/error.hpp"
#include "wire/client/protocols.hpp"
#include "wire/grpc/framing.hpp"
#include "wire/grpc/infer_fields.hpp"
#include "wire/grpc/proto_reader.hpp"
#include "wire/grpc/proto_writer.hpp"
#include "wire/request_error.hpp"

namespace headrace::wire::client {

namespace {

namespace fields = grpc::infer_fields;

constexpr std::string_view kService = "/inference.GRPCInferenceService/";

// Fields of ModelMetadataRequest, ModelMetadataResponse and its TensorMetadata, from the service definition.
constexpr std::uint32_t kRequestName = 1;
constexpr std::uint32_t kResponseInputs = 4;
constexpr std::uint32_t kTensorName = 1;
constexpr std::uint32_t kTensorType = 2;
constexpr std::uint32_t kTensorShape = 3;

std::string with_prefix(const std::string& message) { return grpc::prefix_of(message.size()) + message; }

/// The parameter that asks for high priority.
std::string priority_parameter() {
  std::string value;
  grpc::put_number(value, std::uint64_t{fields::parameter::kUint64} << 3U);  // the field's tag: a varint
  grpc::put_number(value, kHighLevel);
  std::string entry;
  grpc::put_bytes(entry, fields::entry::kKey, "priority");
  grpc::put_bytes(entry, fields::entry::kValue, value);
  return entry;
}

std::string infer_message(const Endpoint& endpoint, const std::vector<InputTensor>& inputs, bool is_high) {
  std::string message;
  grpc::put_bytes(message, fields::request::kModelName, endpoint.model);
  if (is_high) grpc::put_bytes(message, fields::request::kParameters, priority_parameter());
  for (const InputTensor& input : inputs) {
    std::string shape;
    for (const std::int64_t size : input.shape) grpc::put_number(shape, static_cast<std::uint64_t>(size));
    std::string tensor;
    grpc::put_bytes(tensor, fields::input::kName, input.name);
    grpc::put_bytes(tensor, fields::input::kType, input.datatype);
    grpc::put_bytes(tensor, fields::input::kShape, shape);
    grpc::put_bytes(message, fields::request::kInputs, tensor);
  }
  for (const InputTensor& input : inputs) grpc::put_bytes(message, fields::request::kRawInputs, input.bytes);
  return with_prefix(message);
}

/// The header grpc-timeout has at most 8 digits.
std::string timeout_text(Duration deadline) {
  constexpr std::int64_t kMost = 99'999'999;
  const std::int64_t us = std::chrono::duration_cast<std::chrono::microseconds>(deadline).count();
  return us <= kMost ? fmt::format("{}u", std::max<std::int64_t>(us, 1))
                     : fmt::format("{}m", std::min(us / 1000, kMost));
}

ModelInput read_input(grpc::ProtoReader tensor) {
  ModelInput input;
  while (tensor.next()) {
    switch (tensor.field()) {
      case kTensorName: input.name = tensor.text(); break;
      case kTensorType: input.datatype = tensor.text(); break;
      case kTensorShape:
        tensor.each_number([&](std::uint64_t size) { input.shape.push_back(static_cast<std::int64_t>(size)); });
        break;
      default: break;
    }
  }
  return input;
}

}  // namespace

Requests grpc_metadata_request(const Endpoint& endpoint) {
  std::string message;
  grpc::put_bytes(message, kRequestName, endpoint.model);
  return {.path = fmt::format("{}ModelMetadata", kService),
          .authorization = authorization_of(endpoint),
          .contents = {with_prefix(message)}};
}

Requests grpc_infer_requests(const Endpoint& endpoint, const std::vector<std::vector<InputTensor>>& inputs,
                             const RequestOptions& options) {
  Requests requests{.path = fmt::format("{}ModelInfer", kService), .authorization = authorization_of(endpoint)};
  if (options.deadline) requests.timeout = timeout_text(*options.deadline);
  for (const auto& of_one : inputs) {
    requests.contents.push_back(infer_message(endpoint, of_one, false));
    if (options.with_high) requests.high_contents.push_back(infer_message(endpoint, of_one, true));
  }
  return requests;
}

std::vector<ModelInput> read_grpc_metadata(const std::string& reply) {
  std::vector<ModelInput> inputs;
  try {
    grpc::ProtoReader reader(std::string_view(reply).substr(std::min(reply.size(), grpc::kPrefixBytes)));
    while (reader.next()) {
      if (reader.field() == kResponseInputs) inputs.push_back(read_input(reader.message()));
    }
  } catch (const RequestError&) {
    throw DataError("the description is not a valid protocol buffers message");
  }
  return inputs;
}

}  // namespace headrace::wire::client
