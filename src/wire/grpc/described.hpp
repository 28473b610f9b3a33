#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>

namespace headrace::wire::grpc {

struct Field;
/// The fields of a message that the server writes.
using Schema = std::span<const Field>;

/// A field of a message, and the member of a JSON object that provides its value.
struct Field {
  std::string_view name;
  std::uint32_t number = 0;
  const Schema* message = nullptr;  ///< If the field is a message: the schema of that message.
  bool is_data_type = false;        ///< An enumeration, whose names in JSON begin with TYPE_.
};

extern const Schema kServerMetadata;
extern const Schema kModelMetadata;
/// "parameters" is a list of objects with "key" and "value", which encode the entries of a map.
extern const Schema kModelConfigResponse;
extern const Schema kModelStatistics;
extern const Schema kRepositoryIndex;
/// The same for "regions", also of the next one.
extern const Schema kSystemRegionStatus;
extern const Schema kCudaRegionStatus;

/// Encodes a description (wire/descriptions.hpp), which is a JSON object, as a message. Omits members that the schema
/// does not have.
[[nodiscard]] std::string write_described(const nlohmann::json& object, Schema schema);

}  // namespace headrace::wire::grpc
