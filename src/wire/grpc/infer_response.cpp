#include <span>

#include "wire/grpc/infer_messages.hpp"
#include "wire/grpc/proto_writer.hpp"
#include "wire/infer_reply.hpp"

namespace headrace::wire::grpc {

namespace {

// Numbers of fields, from the service definition of the Open Inference Protocol.
namespace response {
constexpr std::uint32_t kModelName = 1;
constexpr std::uint32_t kModelVersion = 2;
constexpr std::uint32_t kId = 3;
constexpr std::uint32_t kOutputs = 5;
constexpr std::uint32_t kRawOutputs = 6;
}  // namespace response
namespace output {
constexpr std::uint32_t kName = 1;
constexpr std::uint32_t kType = 2;
constexpr std::uint32_t kShape = 3;
}  // namespace output

/// What describes an output. The tensor itself follows in raw_output_contents.
std::string description_of(const Tensor& tensor, std::size_t batch) {
  std::string shape;
  put_number(shape, batch);
  for (const std::int64_t dimension : tensor.shape) put_number(shape, static_cast<std::uint64_t>(dimension));
  std::string description;
  put_bytes(description, output::kName, tensor.name);
  put_bytes(description, output::kType, to_string(tensor.type));
  put_bytes(description, output::kShape, shape);
  return description;
}

/// All but the tensors.
std::string head_of(const Inference& inference) {
  const Model& model = inference.served->model;
  std::string head;
  put_bytes(head, response::kModelName, model.name);
  put_bytes(head, response::kModelVersion, model.version);
  if (!inference.id.empty()) put_bytes(head, response::kId, inference.id);
  for (const WantedOutput& wanted : inference.outputs) {
    put_bytes(head, response::kOutputs, description_of(*wanted.tensor, inference.batch));
  }
  return head;
}

}  // namespace

std::size_t infer_response_bytes(const Inference& inference) {
  std::size_t bytes = head_of(inference).size();
  for (const WantedOutput& wanted : inference.outputs) {
    const std::size_t tensor = inference.batch * wanted.tensor->bytes();
    bytes += 1 + number_bytes(tensor) + tensor;
  }
  return bytes;
}

void put_infer_response(const Inference& inference, std::string& out) {
  out += head_of(inference);
  for (const WantedOutput& wanted : inference.outputs) {
    put_bytes_head(out, response::kRawOutputs, inference.batch * wanted.tensor->bytes());
    gather(inference, *wanted.tensor, out);
  }
}

}  // namespace headrace::wire::grpc
