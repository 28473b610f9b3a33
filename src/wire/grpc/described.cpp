#include "wire/grpc/described.hpp"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "wire/grpc/proto_writer.hpp"

namespace headrace::wire::grpc {

namespace {

using nlohmann::json;

// Numbers of fields, from the service definition of the Open Inference Protocol and Triton's model configuration.
constexpr std::array kTensorMetadataFields{Field{"name", 1}, Field{"datatype", 2}, Field{"shape", 3}};
constexpr Schema kTensorMetadata(kTensorMetadataFields);
constexpr std::array kServerMetadataFields{Field{"name", 1}, Field{"version", 2}, Field{"extensions", 3}};
constexpr std::array kModelMetadataFields{Field{"name", 1}, Field{"versions", 2}, Field{"platform", 3},
                                          Field{"inputs", 4, &kTensorMetadata}, Field{"outputs", 5, &kTensorMetadata}};
constexpr std::array kReshapeFields{Field{"shape", 1}};
constexpr Schema kReshape(kReshapeFields);
constexpr std::array kConfigInputFields{Field{"name", 1}, Field{"data_type", 2, nullptr, true}, Field{"dims", 4},
                                        Field{"reshape", 5, &kReshape}};
constexpr Schema kConfigInput(kConfigInputFields);
constexpr std::array kConfigOutputFields{Field{"name", 1}, Field{"data_type", 2, nullptr, true}, Field{"dims", 3},
                                         Field{"reshape", 5, &kReshape}};
constexpr Schema kConfigOutput(kConfigOutputFields);
// "timeout_action" is left out: REJECT is the default.
constexpr std::array kQueuePolicyFields{Field{"default_timeout_microseconds", 2}, Field{"allow_timeout_override", 3},
                                        Field{"max_queue_size", 4}};
constexpr Schema kQueuePolicy(kQueuePolicyFields);
constexpr std::array kBatchingFields{Field{"max_queue_delay_microseconds", 2},
                                     Field{"default_queue_policy", 6, &kQueuePolicy}};
constexpr Schema kBatching(kBatchingFields);
constexpr std::array kParameterFields{Field{"string_value", 1}};
constexpr Schema kParameter(kParameterFields);
constexpr std::array kParameterEntryFields{Field{"key", 1}, Field{"value", 2, &kParameter}};
constexpr Schema kParameterEntry(kParameterEntryFields);
constexpr std::array kConfigFields{Field{"name", 1},
                                   Field{"platform", 2},
                                   Field{"max_batch_size", 4},
                                   Field{"input", 5, &kConfigInput},
                                   Field{"output", 6, &kConfigOutput},
                                   Field{"dynamic_batching", 11, &kBatching},
                                   Field{"parameters", 14, &kParameterEntry},
                                   Field{"backend", 17}};
constexpr Schema kConfig(kConfigFields);
constexpr std::array kConfigResponseFields{Field{"config", 1, &kConfig}};
constexpr std::array kDurationFields{Field{"count", 1}, Field{"ns", 2}};
constexpr Schema kDuration(kDurationFields);
constexpr std::array kInferStatisticsFields{
    Field{"success", 1, &kDuration},       Field{"fail", 2, &kDuration},
    Field{"queue", 3, &kDuration},         Field{"compute_input", 4, &kDuration},
    Field{"compute_infer", 5, &kDuration}, Field{"compute_output", 6, &kDuration}};
constexpr Schema kInferStatistics(kInferStatisticsFields);
constexpr std::array kStatisticsFields{Field{"name", 1},
                                       Field{"version", 2},
                                       Field{"last_inference", 3},
                                       Field{"inference_count", 4},
                                       Field{"execution_count", 5},
                                       Field{"inference_stats", 6, &kInferStatistics}};
constexpr Schema kStatistics(kStatisticsFields);
constexpr std::array kStatisticsResponseFields{Field{"model_stats", 1, &kStatistics}};
constexpr std::array kIndexFields{Field{"name", 1}, Field{"version", 2}, Field{"state", 3}, Field{"reason", 4}};
constexpr Schema kIndex(kIndexFields);
constexpr std::array kIndexResponseFields{Field{"models", 1, &kIndex}};
constexpr std::array kSystemRegionFields{Field{"name", 1}, Field{"key", 2}, Field{"offset", 3}, Field{"byte_size", 4}};
constexpr Schema kSystemRegion(kSystemRegionFields);
constexpr std::array kSystemRegionEntryFields{Field{"key", 1}, Field{"value", 2, &kSystemRegion}};
constexpr Schema kSystemRegionEntry(kSystemRegionEntryFields);
constexpr std::array kSystemRegionStatusFields{Field{"regions", 1, &kSystemRegionEntry}};
constexpr std::array kCudaRegionFields{Field{"name", 1}, Field{"device_id", 2}, Field{"byte_size", 3}};
constexpr Schema kCudaRegion(kCudaRegionFields);
constexpr std::array kCudaRegionEntryFields{Field{"key", 1}, Field{"value", 2, &kCudaRegion}};
constexpr Schema kCudaRegionEntry(kCudaRegionEntryFields);
constexpr std::array kCudaRegionStatusFields{Field{"regions", 1, &kCudaRegionEntry}};

// The index is the number of the type in Triton's enumeration; TYPE_INVALID is 0.
constexpr std::array<std::string_view, 13> kDataTypes{"INVALID", "BOOL",  "UINT8", "UINT16", "UINT32", "UINT64", "INT8",
                                                      "INT16",   "INT32", "INT64", "FP16",   "FP32",   "FP64"};

std::uint64_t data_type_of(std::string_view text) {
  text.remove_prefix(std::string_view("TYPE_").size());
  return static_cast<std::uint64_t>(std::ranges::find(kDataTypes, text) - kDataTypes.begin());
}

std::uint64_t number_of(const json& value) {
  if (value.is_boolean()) return value.get<bool>() ? 1 : 0;
  return value.is_number_unsigned() ? value.get<std::uint64_t>()
                                    : static_cast<std::uint64_t>(value.get<std::int64_t>());
}

void put_value(std::string& out, const Field& field, const json& value) {
  if (value.is_object()) {
    put_bytes(out, field.number, write_described(value, *field.message));
  } else if (!value.is_string()) {
    put_number_field(out, field.number, number_of(value));
  } else if (field.is_data_type) {
    put_number_field(out, field.number, data_type_of(value.get_ref<const std::string&>()));
  } else {
    put_bytes(out, field.number, value.get_ref<const std::string&>());
  }
}

void put_array(std::string& out, const Field& field, const json& values) {
  if (!values.empty() && values.front().is_number()) {
    std::string packed;
    for (const json& value : values) put_number(packed, number_of(value));
    return put_bytes(out, field.number, packed);
  }
  for (const json& value : values) put_value(out, field, value);
}

}  // namespace

const Schema kServerMetadata(kServerMetadataFields);
const Schema kModelMetadata(kModelMetadataFields);
const Schema kModelConfigResponse(kConfigResponseFields);
const Schema kModelStatistics(kStatisticsResponseFields);
const Schema kRepositoryIndex(kIndexResponseFields);
const Schema kSystemRegionStatus(kSystemRegionStatusFields);
const Schema kCudaRegionStatus(kCudaRegionStatusFields);

std::string write_described(const json& object, Schema schema) {
  std::string out;
  for (const Field& field : schema) {
    const auto value = object.find(field.name);
    if (value == object.end()) continue;
    if (value->is_array()) {
      put_array(out, field, *value);
    } else {
      put_value(out, field, *value);
    }
  }
  return out;
}

}  // namespace headrace::wire::grpc
