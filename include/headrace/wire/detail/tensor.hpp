#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace headrace::wire {

/// The types of a tensor's elements, as the Open Inference Protocol has them. Texts (BYTES) are not among them, since
/// queries and answers have a fixed size.
enum class DataType : std::uint8_t {
  boolean,
  uint8,
  uint16,
  uint32,
  uint64,
  int8,
  int16,
  int32,
  int64,
  fp16,
  fp32,
  fp64,
};

/// "BOOL", "UINT8", ..., "FP64", as requests and replies write them.
[[nodiscard]] std::string_view to_string(DataType type) noexcept;
/// Nothing for a name of no such type.
[[nodiscard]] std::optional<DataType> parse_data_type(std::string_view name) noexcept;
[[nodiscard]] std::size_t element_bytes(DataType type) noexcept;

/// A part of a query or of an answer, which clients send or get as one tensor. A request of N queries has N such parts:
/// its tensor has the shape [N, shape...].
struct Tensor {
  std::string name;
  DataType type = DataType::uint8;
  std::vector<std::int64_t> shape = {};  ///< That of one query; empty for a single element. No dimension below 1.
  std::size_t offset = 0;                ///< Where it begins in the query or answer, in bytes.

  /// Elements in one query.
  [[nodiscard]] std::size_t elements() const noexcept;
  /// Bytes in one query.
  [[nodiscard]] std::size_t bytes() const noexcept { return elements() * element_bytes(type); }
};

}  // namespace headrace::wire
