#include "wire/infer_request.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "wire/json_elements.hpp"
#include "wire/request_error.hpp"

namespace headrace::wire {

namespace {

using nlohmann::json;

constexpr std::uint64_t kTimeoutMax = 3'600'000'000;  // microseconds
constexpr std::size_t kShownMax = 8;                  // dimensions of a wrong shape, in a message

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
  for (const char* name : {"shared_memory_region", "sequence_id", "sequence_start", "sequence_end", "classification"}) {
    if (parameters->contains(name))
      refuse(fmt::format("the parameter \"{}\" is of an extension that this server does not offer", name));
  }
  return *parameters;
}

const json& array_member(const json& object, const char* name) {
  const json* array = member(object, name);
  if (array == nullptr || !array->is_array()) refuse(fmt::format("the request has no array \"{}\"", name));
  return *array;
}

std::string shape_text(const std::vector<std::int64_t>& shape) {
  return fmt::format("[N{}{}]", shape.empty() ? "" : ", ", fmt::join(shape, ", "));
}

const Tensor& find(const std::vector<Tensor>& tensors, std::string_view name, std::string_view kind,
                   const ServedModel& served) {
  const auto found = std::ranges::find(tensors, name, &Tensor::name);
  if (found == tensors.end()) refuse(fmt::format("model {} has no {} \"{}\"", served.model.name, kind, name));
  return *found;
}

/// Queries that an input's shape says there are.
std::size_t read_batch(const json& input, const Tensor& tensor, std::size_t batch_max) {
  const json& shape = array_member(input, "shape");
  const auto wrong = [&] {
    std::vector<std::string> dimensions;
    for (const json& dimension : shape) {
      if (dimensions.size() < kShownMax) dimensions.push_back(shown(dimension));
    }
    if (shape.size() > dimensions.size()) dimensions.emplace_back("...");
    refuse(fmt::format("input \"{}\" has the shape [{}], where {} is right, with N from 1 to {}", tensor.name,
                       fmt::join(dimensions, ", "), shape_text(tensor.shape), batch_max));
  };
  if (shape.size() != tensor.shape.size() + 1) wrong();
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (!shape[i].is_number_unsigned()) wrong();
    const auto dimension = shape[i].get<std::uint64_t>();
    if (i == 0 ? dimension < 1 || dimension > batch_max : std::cmp_not_equal(dimension, tensor.shape[i - 1])) wrong();
  }
  return shape[0].get<std::size_t>();
}

/// Copies a tensor's rows, one behind the other in `rows`, to where they lie in queries.
void scatter(std::span<const std::byte> rows, const Tensor& tensor, Inference& inference) {
  const std::size_t stride = inference.queries.size() / inference.batch;
  const std::size_t row = tensor.bytes();
  for (std::size_t i = 0; i < inference.batch; ++i) {
    std::memcpy(inference.queries.data() + i * stride + tensor.offset, rows.data() + i * row, row);
  }
}

/// Reads one input; the binary tensors that are left behind it.
std::span<const std::byte> read_input(const json& input, const Tensor& tensor, Inference& inference,
                                      std::span<const std::byte> tensors) {
  const std::size_t bytes = inference.batch * tensor.bytes();
  const std::optional<std::uint64_t> binary = count_member(parameters_of(input), "binary_data_size");
  const json* data = member(input, "data");
  if (binary.has_value() == (data != nullptr)) {
    refuse(fmt::format("input \"{}\" needs either \"data\" or the parameter \"binary_data_size\"", tensor.name));
  }
  if (!binary) {
    std::vector<std::byte> elements(bytes);
    read_elements(*data, tensor, elements);
    scatter(elements, tensor, inference);
    return tensors;
  }
  if (*binary != bytes)
    refuse(fmt::format("input \"{}\" has {} bytes, where its shape takes {}", tensor.name, *binary, bytes));
  if (bytes > tensors.size()) refuse(fmt::format("the request ends in the middle of input \"{}\"", tensor.name));
  scatter(tensors.first(bytes), tensor, inference);
  return tensors.subspan(bytes);
}

void make_room(Inference& inference, std::size_t batch, MemoryShare& memory) {
  const serve::Operator& op = inference.served->model.engine->op();
  if (!memory.resize(memory.bytes() + batch * (op.query_bytes + op.answer_bytes))) {
    throw RequestError(kUnavailable, "the server has no memory left for this request; try again later");
  }
  inference.batch = batch;
  inference.queries.resize(batch * op.query_bytes);
  inference.answers.resize(batch * op.answer_bytes);
}

void read_inputs(const json& request, Inference& inference, std::span<const std::byte> tensors, MemoryShare& memory) {
  const Model& model = inference.served->model;
  std::vector<const Tensor*> seen;
  for (const json& input : array_member(request, "inputs")) {
    if (!input.is_object()) refuse("an input is no object");
    const Tensor& tensor = find(model.inputs, text_member(input, "name", "an input"), "input", *inference.served);
    if (std::ranges::find(seen, &tensor) != seen.end()) refuse(fmt::format("input \"{}\" is there twice", tensor.name));
    const std::string type = text_member(input, "datatype", fmt::format("input \"{}\"", tensor.name));
    if (type != to_string(tensor.type)) {
      refuse(
          fmt::format("input \"{}\" is of the type {}, where {} is right", tensor.name, type, to_string(tensor.type)));
    }
    const std::size_t batch = read_batch(input, tensor, model.batch_max);
    if (seen.empty()) {
      make_room(inference, batch, memory);
    } else if (batch != inference.batch) {
      refuse(fmt::format("input \"{}\" has {} queries, and another has {}", tensor.name, batch, inference.batch));
    }
    tensors = read_input(input, tensor, inference, tensors);
    seen.push_back(&tensor);
  }
  if (!tensors.empty()) refuse(fmt::format("{} bytes are left behind the last binary input", tensors.size()));
  for (const Tensor& tensor : model.inputs) {
    if (std::ranges::find(seen, &tensor) == seen.end())
      refuse(fmt::format("the request has no input \"{}\"", tensor.name));
  }
}

void read_outputs(const json& request, Inference& inference) {
  const Model& model = inference.served->model;
  const bool binary = flag_member(parameters_of(request), "binary_data_output").value_or(false);
  const json* outputs = member(request, "outputs");
  if (outputs == nullptr || outputs->empty()) {
    for (const Tensor& tensor : model.outputs) inference.outputs.push_back({&tensor, binary});
    return;
  }
  for (const json& output : array_member(request, "outputs")) {
    if (!output.is_object()) refuse("an output is no object");
    const Tensor& tensor = find(model.outputs, text_member(output, "name", "an output"), "output", *inference.served);
    if (std::ranges::find(inference.outputs, &tensor, &WantedOutput::tensor) != inference.outputs.end()) {
      refuse(fmt::format("output \"{}\" is asked for twice", tensor.name));
    }
    inference.outputs.push_back({&tensor, flag_member(parameters_of(output), "binary_data").value_or(binary)});
  }
}

}  // namespace

std::shared_ptr<Inference> read_infer_request(ServedModel& served, std::string_view text,
                                              std::span<const std::byte> tensors, MemoryShare& memory) {
  const json request = parse(text);
  if (!request.is_object()) refuse("the request is no JSON object");
  auto inference = std::make_shared<Inference>();
  inference->served = &served;
  if (const json* id = member(request, "id")) {
    if (!id->is_string()) refuse("\"id\" is no text");
    inference->id = id->get<std::string>();
  }
  read_inputs(request, *inference, tensors, memory);
  read_outputs(request, *inference);
  if (const auto timeout = count_member(parameters_of(request), "timeout"); timeout.value_or(0) > 0) {
    inference->deadline = SteadyClock::now() + std::chrono::microseconds(std::min(*timeout, kTimeoutMax));
  }
  return inference;
}

}  // namespace headrace::wire
