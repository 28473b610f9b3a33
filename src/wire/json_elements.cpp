#include "wire/json_elements.hpp"

#include <fmt/format.h>

#include <cmath>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>

#include "wire/request_error.hpp"

namespace headrace::wire {

namespace {

using nlohmann::json;

constexpr int kDepthMax = 16;

[[noreturn]] void refuse(const Tensor& tensor, std::string_view why) {
  throw RequestError(kBadRequest, fmt::format("\"{}\": {}", tensor.name, why));
}

/// Calls `done` with a value of the C++ type for the elements of `tensor`.
template <class Done>
void with_type(const Tensor& tensor, Done done) {
  switch (tensor.type) {
    case DataType::boolean: return done(bool{});
    case DataType::uint8: return done(std::uint8_t{});
    case DataType::uint16: return done(std::uint16_t{});
    case DataType::uint32: return done(std::uint32_t{});
    case DataType::uint64: return done(std::uint64_t{});
    case DataType::int8: return done(std::int8_t{});
    case DataType::int16: return done(std::int16_t{});
    case DataType::int32: return done(std::int32_t{});
    case DataType::int64: return done(std::int64_t{});
    case DataType::fp32: return done(float{});
    case DataType::fp64: return done(double{});
    case DataType::fp16: break;
  }
  refuse(tensor, "JSON cannot represent FP16; use binary data");
}

template <class T>
T element_of(const json& value, const Tensor& tensor) {
  const auto wrong = [&] { refuse(tensor, fmt::format("{} is not a valid {}", shown(value), to_string(tensor.type))); };
  if constexpr (std::same_as<T, bool>) {
    if (!value.is_boolean()) wrong();
    return value.get<bool>();
  } else if constexpr (std::integral<T>) {
    if (value.is_number_unsigned()) {
      if (const auto number = value.get<std::uint64_t>(); std::in_range<T>(number)) return static_cast<T>(number);
    } else if (value.is_number_integer()) {
      if (const auto number = value.get<std::int64_t>(); std::in_range<T>(number)) return static_cast<T>(number);
    }
    wrong();
  } else {
    if (!value.is_number()) wrong();
    const auto number = value.get<double>();
    if (!(std::abs(number) <= static_cast<double>(std::numeric_limits<T>::max()))) wrong();
    return static_cast<T>(number);
  }
  return {};
}

template <class T>
void read_all(const json& data, const Tensor& tensor, std::span<std::byte>& rest, int depth) {
  if (!data.is_array() || depth == kDepthMax) refuse(tensor, "\"data\" is not an array of numbers");
  for (const json& value : data) {
    if (value.is_array()) {
      read_all<T>(value, tensor, rest, depth + 1);
      continue;
    }
    if (rest.size() < sizeof(T)) refuse(tensor, "\"data\" has more elements than the shape says");
    const T element = element_of<T>(value, tensor);
    std::memcpy(rest.data(), &element, sizeof(T));
    rest = rest.subspan(sizeof(T));
  }
}

}  // namespace

std::string shown(const json& value) {
  constexpr std::size_t kTextMax = 64;
  const bool short_text = value.is_string() && value.get_ref<const std::string&>().size() <= kTextMax;
  if (short_text || (value.is_primitive() && !value.is_string() && !value.is_binary())) {
    return value.dump(-1, ' ', false, json::error_handler_t::replace);
  }
  return fmt::format("an {}", value.is_string() ? "overlong string" : value.type_name());
}

void read_elements(const json& data, const Tensor& tensor, std::span<std::byte> elements) {
  with_type(tensor, [&](auto element) {
    std::span<std::byte> rest = elements;
    read_all<decltype(element)>(data, tensor, rest, 0);
    if (!rest.empty()) refuse(tensor, "\"data\" has fewer elements than the shape says");
  });
}

void write_elements(std::span<const std::byte> elements, const Tensor& tensor, std::string& text) {
  with_type(tensor, [&](auto element) {
    text += '[';
    for (std::size_t at = 0; at < elements.size(); at += sizeof(element)) {
      if (at > 0) text += ',';
      if constexpr (std::same_as<decltype(element), bool>) {
        text += elements[at] == std::byte{0} ? "false" : "true";
        continue;
      }
      std::memcpy(&element, elements.data() + at, sizeof(element));
      if constexpr (std::floating_point<decltype(element)>) {
        if (!std::isfinite(element)) {
          throw RequestError(kInternalError,
                             fmt::format("output \"{}\" has a value that JSON cannot write ({}); ask for binary data",
                                         tensor.name, element));
        }
        if (element == 0 && std::signbit(element)) {
          text += "-0.0";  // readers parse "-0" as an integer, which loses the sign
          continue;
        }
      }
      fmt::format_to(std::back_inserter(text), "{}", element);
    }
    text += ']';
  });
}

}  // namespace headrace::wire
