#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>

#include "headrace/wire/detail/tensor.hpp"

namespace headrace::wire {

/// A value as messages show it: a number or a short text as it is, everything else by its kind. Writing out what a
/// client sent could take as much stack as it has brackets.
[[nodiscard]] std::string shown(const nlohmann::json& value);

/// Reads the elements of a tensor from a JSON array, whose own arrays may have any form. Throws RequestError where
/// their number is not that of `elements`, or one of them cannot be an element of that type.
void read_elements(const nlohmann::json& data, const Tensor& tensor, std::span<std::byte> elements);

/// Writes elements as a flat JSON array. Throws RequestError for numbers that JSON cannot write (NaN, infinity), and
/// for the type FP16.
void write_elements(std::span<const std::byte> elements, const Tensor& tensor, std::string& text);

}  // namespace headrace::wire
