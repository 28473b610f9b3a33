#pragma once

#include <cstdint>

/// Numbers of fields, from the service definition of the Open Inference Protocol: those of ModelInferRequest with its
/// tensors, requested outputs and parameters, and of ModelInferResponse with its tensors.
namespace headrace::wire::grpc::infer_fields {

namespace request {
inline constexpr std::uint32_t kModelName = 1;
inline constexpr std::uint32_t kModelVersion = 2;
inline constexpr std::uint32_t kId = 3;
inline constexpr std::uint32_t kParameters = 4;
inline constexpr std::uint32_t kInputs = 5;
inline constexpr std::uint32_t kOutputs = 6;
inline constexpr std::uint32_t kRawInputs = 7;
}  // namespace request

namespace input {
inline constexpr std::uint32_t kName = 1;
inline constexpr std::uint32_t kType = 2;
inline constexpr std::uint32_t kShape = 3;
inline constexpr std::uint32_t kParameters = 4;
inline constexpr std::uint32_t kContents = 5;
}  // namespace input

namespace wanted_output {
inline constexpr std::uint32_t kName = 1;
inline constexpr std::uint32_t kParameters = 2;
}  // namespace wanted_output

/// An entry of the map from the names of parameters to their values.
namespace entry {
inline constexpr std::uint32_t kKey = 1;
inline constexpr std::uint32_t kValue = 2;
}  // namespace entry

namespace parameter {
inline constexpr std::uint32_t kInt64 = 2;
inline constexpr std::uint32_t kText = 3;
inline constexpr std::uint32_t kUint64 = 5;
}  // namespace parameter

namespace response {
inline constexpr std::uint32_t kModelName = 1;
inline constexpr std::uint32_t kModelVersion = 2;
inline constexpr std::uint32_t kId = 3;
inline constexpr std::uint32_t kOutputs = 5;
inline constexpr std::uint32_t kRawOutputs = 6;
}  // namespace response

namespace output {
inline constexpr std::uint32_t kName = 1;
inline constexpr std::uint32_t kType = 2;
inline constexpr std::uint32_t kShape = 3;
inline constexpr std::uint32_t kParameters = 4;
}  // namespace output

}  // namespace headrace::wire::grpc::infer_fields
