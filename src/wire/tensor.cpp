#include "headrace/wire/detail/tensor.hpp"

#include "base/names.hpp"

namespace headrace::wire {

namespace {

constexpr auto kDataTypes = names_of<DataType>("a type of a tensor's elements", {{DataType::boolean, "BOOL"},
                                                                                 {DataType::uint8, "UINT8"},
                                                                                 {DataType::uint16, "UINT16"},
                                                                                 {DataType::uint32, "UINT32"},
                                                                                 {DataType::uint64, "UINT64"},
                                                                                 {DataType::int8, "INT8"},
                                                                                 {DataType::int16, "INT16"},
                                                                                 {DataType::int32, "INT32"},
                                                                                 {DataType::int64, "INT64"},
                                                                                 {DataType::fp16, "FP16"},
                                                                                 {DataType::fp32, "FP32"},
                                                                                 {DataType::fp64, "FP64"}});

}  // namespace

std::string_view to_string(DataType type) noexcept { return kDataTypes.of(type); }

std::optional<DataType> parse_data_type(std::string_view name) noexcept {
  for (const Name<DataType>& known : kDataTypes.all()) {
    if (known.text == name) return known.value;
  }
  return {};
}

std::size_t element_bytes(DataType type) noexcept {
  switch (type) {
    case DataType::boolean:
    case DataType::uint8:
    case DataType::int8: return 1;
    case DataType::uint16:
    case DataType::int16:
    case DataType::fp16: return 2;
    case DataType::uint32:
    case DataType::int32:
    case DataType::fp32: return 4;
    case DataType::uint64:
    case DataType::int64:
    case DataType::fp64: return 8;
  }
  return 0;
}

std::size_t Tensor::elements() const noexcept {
  std::size_t product = 1;
  for (const std::int64_t dimension : shape) product *= static_cast<std::size_t>(dimension);
  return product;
}

}  // namespace headrace::wire
