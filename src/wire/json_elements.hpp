#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>

#include "headrace/wire/detail/tensor.hpp"

namespace headrace::wire {

/// A value as messages show it: a number or a short string as it is, anything else by its kind. Writing out a client's
/// nested value could exhaust the stack.
[[nodiscard]] std::string shown(const nlohmann::json& value);

/// Reads the elements of a tensor from a JSON array, which may be nested in any way. Throws RequestError if their
/// number differs from that of `elements`, or an element does not fit the type.
void read_elements(const nlohmann::json& data, const Tensor& tensor, std::span<std::byte> elements);

/// Writes elements as a flat JSON array. Throws RequestError for numbers that JSON cannot represent (NaN, infinity),
/// and for the type FP16.
void write_elements(std::span<const std::byte> elements, const Tensor& tensor, std::string& text);

}  // namespace headrace::wire
