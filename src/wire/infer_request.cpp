#include "wire/infer_request.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "wire/infer_builder.hpp"
#include "wire/json_elements.hpp"
#include "wire/request_error.hpp"

namespace headrace::wire {

namespace {

using nlohmann::json;

constexpr std::size_t kDimensionsMax = 16;

[[noreturn]] void refuse(const std::string& why) { throw RequestError(kBadRequest, why); }

json parse(std::string_view text) {
  if (text.size() > kJsonBytesMax) {
    throw RequestError(
        kTooLarge, fmt::format("the JSON of a request has at most {} bytes; send tensors in binary", kJsonBytesMax));
  }
  try {
    return json::parse(text);
  } catch (const json::exception& error) {
    const std::string_view what = error.what();
    const std::size_t prefix = what.find("] ");  // "[json.exception.parse_error.101] "
    refuse(
        fmt::format("the request is no JSON: {}", prefix == std::string_view::npos ? what : what.substr(prefix + 2)));
  }
}

/// The member of an object; null where there is none.
const json* member(const json& object, const char* name) {
  const auto found = object.find(name);
  return found == object.end() ? nullptr : &*found;
}

std::string text_member(const json& object, const char* name, std::string_view whose) {
  const json* text = member(object, name);
  if (text == nullptr || !text->is_string()) refuse(fmt::format("{} has no text \"{}\"", whose, name));
  return text->get<std::string>();
}

std::optional<std::uint64_t> count_member(const json& object, const char* name) {
  const json* number = member(object, name);
  if (number == nullptr) return {};
  if (!number->is_number_unsigned()) refuse(fmt::format("\"{}\" is not a whole number of 0 or more", name));
  return number->get<std::uint64_t>();
}

std::optional<bool> flag_member(const json& object, const char* name) {
  const json* flag = member(object, name);
  if (flag == nullptr) return {};
  if (!flag->is_boolean()) refuse(fmt::format("\"{}\" is neither true nor false", name));
  return flag->get<bool>();
}

/// The "parameters" of an object; an empty object where there are none.
const json& parameters_of(const json& object) {
  static const json kNone = json::object();
  const json* parameters = member(object, "parameters");
  if (parameters == nullptr) return kNone;
  if (!parameters->is_object()) refuse("\"parameters\" is no object");
  for (const auto& parameter : parameters->items()) check_parameter(parameter.key());
  return *parameters;
}

const json& array_member(const json& object, const char* name) {
  const json* array = member(object, name);
  if (array == nullptr || !array->is_array()) refuse(fmt::format("the request has no array \"{}\"", name));
  return *array;
}

std::vector<std::int64_t> read_shape(const json& input, std::string_view name) {
  std::vector<std::int64_t> shape;
  for (const json& dimension : array_member(input, "shape")) {
    if (shape.size() == kDimensionsMax) refuse("an input has too many dimensions");
    if (!dimension.is_number_integer()) {
      refuse(fmt::format("input \"{}\" has the shape [{}{}], where every dimension is a whole number", name,
                         shape.empty() ? "" : fmt::format("{}, ", fmt::join(shape, ", ")), shown(dimension)));
    }
    shape.push_back(dimension.get<std::int64_t>());
  }
  return shape;
}

/// Reads one input; the binary tensors that are left behind it.
std::span<const std::byte> read_input(const json& input, InferBuilder& builder, std::span<const std::byte> tensors) {
  if (!input.is_object()) refuse("an input is no object");
  const std::string name = text_member(input, "name", "an input");
  const std::string type = text_member(input, "datatype", fmt::format("input \"{}\"", name));
  const Tensor& tensor = builder.add_input(name, type, read_shape(input, name));
  const std::optional<std::uint64_t> binary = count_member(parameters_of(input), "binary_data_size");
  const json* data = member(input, "data");
  if (binary.has_value() == (data != nullptr)) {
    refuse(fmt::format("input \"{}\" needs either \"data\" or the parameter \"binary_data_size\"", name));
  }
  if (!binary) {
    std::vector<std::byte> elements(builder.input_bytes());
    read_elements(*data, tensor, elements);
    builder.add_elements(elements);
    return tensors;
  }
  builder.require_bytes(*binary);
  if (*binary > tensors.size()) refuse(fmt::format("the request ends in the middle of input \"{}\"", name));
  builder.add_elements(tensors.first(*binary));
  return tensors.subspan(*binary);
}

void read_outputs(const json& request, InferBuilder& builder, bool binary) {
  if (member(request, "outputs") == nullptr) return;
  for (const json& output : array_member(request, "outputs")) {
    if (!output.is_object()) refuse("an output is no object");
    builder.add_output(text_member(output, "name", "an output"),
                       flag_member(parameters_of(output), "binary_data").value_or(binary));
  }
}

}  // namespace

std::shared_ptr<Inference> read_infer_request(ServedModel& served, std::string_view text,
                                              std::span<const std::byte> tensors, Budget& budget) {
  const json request = parse(text);
  if (!request.is_object()) refuse("the request is no JSON object");
  InferBuilder builder(served, budget);
  if (const json* id = member(request, "id")) {
    if (!id->is_string()) refuse("\"id\" is no text");
    builder.set_id(id->get_ref<const std::string&>());
  }
  for (const json& input : array_member(request, "inputs")) tensors = read_input(input, builder, tensors);
  if (!tensors.empty()) refuse(fmt::format("{} bytes are left behind the last binary input", tensors.size()));
  const json& parameters = parameters_of(request);
  const bool binary = flag_member(parameters, "binary_data_output").value_or(false);
  read_outputs(request, builder, binary);
  builder.set_timeout(count_member(parameters, "timeout").value_or(0));
  return builder.finish(binary);
}

}  // namespace headrace::wire
