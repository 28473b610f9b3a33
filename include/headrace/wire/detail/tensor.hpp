#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace headrace::wire {

/// The element types of tensors in the Open Inference Protocol, except strings (BYTES), because queries and answers
/// have a fixed size.
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

/// "BOOL", "UINT8", ..., "FP64", as in requests and replies.
[[nodiscard]] std::string_view to_string(DataType type) noexcept;
/// Empty for any other name.
[[nodiscard]] std::optional<DataType> parse_data_type(std::string_view name) noexcept;
[[nodiscard]] std::size_t element_bytes(DataType type) noexcept;

/// A part of a query or an answer that clients send or receive as one tensor. A request of N queries has N such parts,
/// and its tensor has the shape [N, shape...].
struct Tensor {
  std::string name;
  DataType type = DataType::uint8;
  std::vector<std::int64_t> shape = {};  ///< Shape in one query; empty for a single element. No dimension below 1.
  std::size_t offset = 0;                ///< Offset in the query or answer, in bytes.

  /// Elements in one query.
  [[nodiscard]] std::size_t elements() const noexcept;
  /// Bytes in one query.
  [[nodiscard]] std::size_t bytes() const noexcept { return elements() * element_bytes(type); }
};

}  // namespace headrace::wire
