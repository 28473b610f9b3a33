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
constexpr std::size_t kLevelsMax = 32;     // most nested arrays and objects
constexpr std::size_t kValuesMore = 4096;  // most values of a request besides its tensors' elements

/// Upper bound on the values, brackets and commas in a request to `model`.
std::size_t values_max(const Model& model) {
  std::size_t values = kValuesMore;
  for (const Tensor& tensor : model.inputs) {
    std::size_t elements = static_cast<std::size_t>(model.batch_max);
    for (const std::int64_t dimension : tensor.shape) elements *= static_cast<std::size_t>(dimension);
    values += elements * (tensor.shape.size() + 2);  // each element may be in an array of its own per dimension
  }
  return values;
}

/// Refuses text that cannot be a request to `model`. Parsing it could delay other clients at the sender's will: 4 MiB
/// of "[" take a second.
void check_structure(std::string_view text, const Model& model) {
  const std::size_t most = values_max(model);
  std::size_t values = 0;
  std::size_t depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    switch (text[i]) {
      case '"':
        for (++i; i < text.size() && text[i] != '"'; ++i) i += text[i] == '\\' ? 1 : 0;
        break;
      case '[':
      case '{':
        if (++depth > kLevelsMax)
          refuse(fmt::format("the JSON of the request nests deeper than {} levels", kLevelsMax));
        ++values;
        break;
      case ']':
      case '}': depth -= depth > 0 ? 1 : 0; break;
      case ',': ++values; break;
      default: break;
    }
    if (values > most) refuse("the request has more elements than its queries may have");
  }
}

json parse(std::string_view text, const Model& model) {
  if (text.size() > kJsonBytesMax) {
    throw RequestError(
        kTooLarge, fmt::format("the JSON of a request has at most {} bytes; send tensors in binary", kJsonBytesMax));
  }
  check_structure(text, model);
  try {
    return json::parse(text);
  } catch (const json::exception& error) {
    const std::string_view what = error.what();
    const std::size_t prefix = what.find("] ");  // "[json.exception.parse_error.101] "
    refuse(fmt::format("the request is not valid JSON: {}",
                       prefix == std::string_view::npos ? what : what.substr(prefix + 2)));
  }
}

/// A member of an object; null if there is none.
const json* member(const json& object, const char* name) {
  const auto found = object.find(name);
  return found == object.end() ? nullptr : &*found;
}

std::string text_member(const json& object, const char* name, std::string_view whose) {
  const json* text = member(object, name);
  if (text == nullptr || !text->is_string()) refuse(fmt::format("{} has no string \"{}\"", whose, name));
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

/// The "parameters" of an object; an empty object if there are none.
const json& parameters_of(const json& object) {
  static const json kNone = json::object();
  const json* parameters = member(object, "parameters");
  if (parameters == nullptr) return kNone;
  if (!parameters->is_object()) refuse("\"parameters\" is not an object");
  for (const auto& parameter : parameters->items()) check_parameter(parameter.key());
  return *parameters;
}

const json& array_member(const json& object, const char* name, std::string_view what) {
  const json* array = member(object, name);
  if (array == nullptr || !array->is_array()) refuse(fmt::format("{} has no array \"{}\"", what, name));
  return *array;
}

std::vector<std::int64_t> read_shape(const json& input, std::string_view name) {
  std::vector<std::int64_t> shape;
  for (const json& dimension : array_member(input, "shape", fmt::format("input \"{}\"", name))) {
    if (shape.size() == kDimensionsMax) refuse("an input has too many dimensions");
    if (!dimension.is_number_integer()) {
      refuse(fmt::format("input \"{}\" has the shape [{}{}], but every dimension must be a whole number", name,
                         shape.empty() ? "" : fmt::format("{}, ", fmt::join(shape, ", ")), shown(dimension)));
    }
    shape.push_back(dimension.get<std::int64_t>());
  }
  return shape;
}

/// The shared memory that the parameters of a tensor name.
NamedRange range_of(const json& parameters) {
  NamedRange named{.offset = count_member(parameters, "shared_memory_offset"),
                   .bytes = count_member(parameters, "shared_memory_byte_size")};
  if (const json* region = member(parameters, "shared_memory_region")) {
    if (!region->is_string()) refuse("\"shared_memory_region\" is not a string");
    named.region = region->get<std::string>();
  }
  return named;
}

/// Reads one input. Returns the binary tensors that follow it.
std::span<const std::byte> read_input(const json& input, InferBuilder& builder, const SharedRegions& regions,
                                      std::span<const std::byte> tensors) {
  if (!input.is_object()) refuse("an input is not an object");
  const std::string name = text_member(input, "name", "an input");
  const std::string type = text_member(input, "datatype", fmt::format("input \"{}\"", name));
  const Tensor& tensor = builder.add_input(name, type, read_shape(input, name));
  const json& parameters = parameters_of(input);
  const std::optional<std::uint64_t> binary = count_member(parameters, "binary_data_size");
  const json* data = member(input, "data");
  if (const SharedRange range = regions.find(range_of(parameters), "input", name); range.region) {
    if (binary || data != nullptr) {
      refuse(fmt::format("input \"{}\" is in shared memory, so the request must not have data for it", name));
    }
    builder.add_elements(range);
    return tensors;
  }
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

void read_outputs(const json& request, InferBuilder& builder, const SharedRegions& regions, bool binary) {
  if (member(request, "outputs") == nullptr) return;
  for (const json& output : array_member(request, "outputs", "the request")) {
    if (!output.is_object()) refuse("an output is not an object");
    const std::string name = text_member(output, "name", "an output");
    const json& parameters = parameters_of(output);
    builder.add_output(name, flag_member(parameters, "binary_data").value_or(binary),
                       regions.find(range_of(parameters), "output", name));
  }
}

}  // namespace

std::shared_ptr<Inference> read_infer_request(ServedModel& served, std::string_view text,
                                              std::span<const std::byte> tensors, const SharedRegions& regions,
                                              InferencePool& pool) {
  const json request = parse(text, served.model);
  if (!request.is_object()) refuse("the request is not a JSON object");
  InferBuilder builder(served, pool);
  if (const json* id = member(request, "id")) {
    if (!id->is_string()) refuse("\"id\" is not a string");
    builder.set_id(id->get_ref<const std::string&>());
  }
  for (const json& input : array_member(request, "inputs", "the request")) {
    tensors = read_input(input, builder, regions, tensors);
  }
  if (!tensors.empty()) refuse(fmt::format("{} bytes follow the last binary input", tensors.size()));
  const json& parameters = parameters_of(request);
  for (const auto& parameter : parameters.items()) refuse_of_request(parameter.key());
  const bool binary = flag_member(parameters, "binary_data_output").value_or(false);
  read_outputs(request, builder, regions, binary);
  builder.set_priority(count_member(parameters, "priority").value_or(0));
  builder.set_timeout(count_member(parameters, "timeout").value_or(0));
  return builder.finish(binary);
}

}  // namespace headrace::wire
