#include <span>

#include "wire/grpc/infer_fields.hpp"
#include "wire/grpc/infer_messages.hpp"
#include "wire/grpc/proto_writer.hpp"
#include "wire/infer_reply.hpp"

namespace headrace::wire::grpc {

namespace {

constexpr std::size_t kUsualHeadBytes = 128;

/// Bytes of an output in raw_output_contents; 0 for an output in shared memory. Clients rely on an entry for each
/// output.
std::size_t raw_bytes(const Inference& inference, const WantedOutput& wanted) {
  return wanted.range.region != nullptr ? 0 : inference.batch * wanted.tensor->bytes();
}

void put_parameter(std::string& out, std::string_view name, std::string_view value) {
  std::string entry;
  put_bytes(entry, infer_fields::entry::kKey, name);
  put_bytes(entry, infer_fields::entry::kValue, value);
  put_bytes(out, infer_fields::output::kParameters, entry);
}

void put_number_parameter(std::string& out, std::string_view name, std::uint64_t number) {
  std::string value;
  put_number_field(value, infer_fields::parameter::kInt64, number);
  put_parameter(out, name, value);
}

/// The description of an output. The tensor itself follows in raw_output_contents, or is in shared memory.
std::string description_of(const WantedOutput& wanted, std::size_t batch) {
  const Tensor& tensor = *wanted.tensor;
  std::string shape;
  put_number(shape, batch);
  for (const std::int64_t dimension : tensor.shape) put_number(shape, static_cast<std::uint64_t>(dimension));
  std::string description;
  description.reserve(kUsualHeadBytes);
  put_bytes(description, infer_fields::output::kName, tensor.name);
  put_bytes(description, infer_fields::output::kType, to_string(tensor.type));
  put_bytes(description, infer_fields::output::kShape, shape);
  if (wanted.range.region != nullptr) {
    std::string region;
    put_bytes(region, infer_fields::parameter::kText, wanted.range.region->name());
    put_parameter(description, "shared_memory_region", region);
    put_number_parameter(description, "shared_memory_offset", wanted.range.offset);
    put_number_parameter(description, "shared_memory_byte_size", batch * tensor.bytes());
  }
  return description;
}

/// Everything but the tensors.
std::string head_of(const Inference& inference) {
  const Model& model = inference.served->model;
  std::string head;
  head.reserve(kUsualHeadBytes);
  put_bytes(head, infer_fields::response::kModelName, model.name);
  put_bytes(head, infer_fields::response::kModelVersion, model.version);
  if (!inference.id.empty()) put_bytes(head, infer_fields::response::kId, inference.id);
  for (const WantedOutput& wanted : inference.outputs) {
    put_bytes(head, infer_fields::response::kOutputs, description_of(wanted, inference.batch));
  }
  return head;
}

}  // namespace

InferResponse::InferResponse(const Inference& inference)
    : inference_(inference), head_(head_of(inference)), bytes_(head_.size()) {
  for (const WantedOutput& wanted : inference.outputs) {
    const std::size_t tensor = raw_bytes(inference, wanted);
    bytes_ += 1 + number_bytes(tensor) + tensor;
  }
}

void InferResponse::put(std::string& out) const {
  out += head_;
  for (const WantedOutput& wanted : inference_.outputs) {
    put_bytes_head(out, infer_fields::response::kRawOutputs, raw_bytes(inference_, wanted));
    if (wanted.range.region == nullptr) gather(inference_, *wanted.tensor, out);
  }
}

}  // namespace headrace::wire::grpc
