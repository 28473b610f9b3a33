#include <fmt/format.h>

#include <array>
#include <concepts>
#include <cstring>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "wire/grpc/infer_fields.hpp"
#include "wire/grpc/infer_messages.hpp"
#include "wire/grpc/proto_reader.hpp"
#include "wire/infer_builder.hpp"
#include "wire/request_error.hpp"

namespace headrace::wire::grpc {

namespace {

constexpr std::size_t kDimensionsMax = 16;
constexpr std::size_t kIdMax = 1024;  // bytes

/// The field of InferTensorContents that holds elements of a type; 0 for FP16, which has no field.
std::uint32_t contents_field(DataType type) noexcept {
  switch (type) {
    case DataType::boolean: return 1;
    case DataType::int8:
    case DataType::int16:
    case DataType::int32: return 2;
    case DataType::int64: return 3;
    case DataType::uint8:
    case DataType::uint16:
    case DataType::uint32: return 4;
    case DataType::uint64: return 5;
    case DataType::fp32: return 6;
    case DataType::fp64: return 7;
    case DataType::fp16: return 0;
  }
  return 0;
}

/// Collects the elements of one tensor from `contents`.
class Contents {
 public:
  Contents(const Tensor& tensor, std::size_t bytes) : tensor_(tensor), elements_(bytes) {}

  void read(ProtoReader contents) {
    const std::uint32_t field = contents_field(tensor_.type);
    while (contents.next()) {
      if (contents.field() != field) {
        refuse(fmt::format("input \"{}\" has contents of a type other than {}; FP16 must be in raw_input_contents",
                           tensor_.name, to_string(tensor_.type)));
      }
      read_field(contents);
    }
  }
  [[nodiscard]] std::span<const std::byte> elements() const noexcept { return std::span(elements_).first(used_); }

 private:
  void read_field(const ProtoReader& contents) {
    switch (tensor_.type) {
      case DataType::boolean: return read_numbers<std::uint8_t, bool>(contents);
      case DataType::int8: return read_numbers<std::int8_t, std::int64_t>(contents);
      case DataType::int16: return read_numbers<std::int16_t, std::int64_t>(contents);
      case DataType::int32: return read_numbers<std::int32_t, std::int64_t>(contents);
      case DataType::int64: return read_numbers<std::int64_t, std::int64_t>(contents);
      case DataType::uint8: return read_numbers<std::uint8_t, std::uint64_t>(contents);
      case DataType::uint16: return read_numbers<std::uint16_t, std::uint64_t>(contents);
      case DataType::uint32: return read_numbers<std::uint32_t, std::uint64_t>(contents);
      case DataType::uint64: return read_numbers<std::uint64_t, std::uint64_t>(contents);
      case DataType::fp32:
      case DataType::fp64: {
        const std::string_view numbers = contents.fixed_numbers(element_bytes(tensor_.type));
        return add(numbers.data(), numbers.size());
      }
      case DataType::fp16: return;
    }
  }

  /// Reads whole numbers that are encoded as `Written` and must fit in `Element`.
  template <class Element, class Written>
  void read_numbers(const ProtoReader& contents) {
    contents.each_number([this](std::uint64_t number) {
      const auto written = static_cast<Written>(number);
      if constexpr (!std::same_as<Written, bool>) {
        if (!std::in_range<Element>(written)) {
          refuse(fmt::format("input \"{}\": {} is not a valid {}", tensor_.name, written, to_string(tensor_.type)));
        }
      }
      const auto element = static_cast<Element>(written);
      add(&element, sizeof(element));
    });
  }

  void add(const void* elements, std::size_t bytes) {
    if (bytes > elements_.size() - used_) {
      refuse(fmt::format("input \"{}\" has more elements than its shape says", tensor_.name));
    }
    std::memcpy(elements_.data() + used_, elements, bytes);
    used_ += bytes;
  }

  const Tensor& tensor_;
  std::vector<std::byte> elements_;
  std::size_t used_ = 0;
};

/// An entry of a map of parameters.
struct Parameter {
  std::string_view name;
  std::optional<std::uint64_t> count;    ///< Set if the value is a whole number of 0 or more.
  std::optional<std::string_view> text;  ///< Set if the value is a string.
};

Parameter read_parameter(ProtoReader entry) {
  Parameter read;
  while (entry.next()) {
    if (entry.field() == infer_fields::entry::kKey) {
      read.name = entry.text();
    } else if (entry.field() == infer_fields::entry::kValue) {
      ProtoReader value = entry.message();
      while (value.next()) {
        read.count.reset();
        read.text.reset();
        if (value.field() == infer_fields::parameter::kText) read.text = value.text();
        const bool is_signed = value.field() == infer_fields::parameter::kInt64;
        if (!is_signed && value.field() != infer_fields::parameter::kUint64) continue;
        const std::uint64_t number = value.number();
        if (!is_signed || static_cast<std::int64_t>(number) >= 0) read.count = number;
      }
    }
  }
  check_parameter(read.name);
  return read;
}

/// Records a parameter of a tensor that concerns shared memory.
void note_range(const Parameter& parameter, NamedRange& named) {
  if (parameter.name == "shared_memory_region") {
    if (!parameter.text) refuse("\"shared_memory_region\" is not a string");
    named.region = *parameter.text;
    return;
  }
  const bool is_offset = parameter.name == "shared_memory_offset";
  if (!is_offset && parameter.name != "shared_memory_byte_size") return;
  if (!parameter.count) refuse(fmt::format("\"{}\" is not a whole number of 0 or more", parameter.name));
  (is_offset ? named.offset : named.bytes) = parameter.count;
}

/// The parts of a message that are read before its tensors.
struct Head {
  std::string_view name;
  std::string_view version;
  std::string_view id;
  std::uint64_t timeout = 0;   ///< In microseconds; 0: none.
  std::uint64_t priority = 0;  ///< See priority_of().
  std::size_t raw_inputs = 0;
};

Head read_head(ProtoReader message) {
  Head head;
  while (message.next()) {
    switch (message.field()) {
      case infer_fields::request::kModelName: head.name = message.text(); break;
      case infer_fields::request::kModelVersion: head.version = message.text(); break;
      case infer_fields::request::kId:
        head.id = message.text();
        if (head.id.size() > kIdMax) refuse(fmt::format("the request's id has more than {} bytes", kIdMax));
        break;
      case infer_fields::request::kRawInputs:
        (void)message.bytes();
        ++head.raw_inputs;
        break;
      case infer_fields::request::kParameters: {
        const Parameter parameter = read_parameter(message.message());
        refuse_of_request(parameter.name);
        const bool is_timeout = parameter.name == "timeout";
        if (!is_timeout && parameter.name != "priority") break;
        if (!parameter.count) refuse(fmt::format("\"{}\" is not a whole number of 0 or more", parameter.name));
        (is_timeout ? head.timeout : head.priority) = *parameter.count;
        break;
      }
      default: break;
    }
  }
  return head;
}

/// The raw inputs of a message, one after the other.
class RawInputs {
 public:
  explicit RawInputs(ProtoReader message) : message_(message) {}
  /// Returns the next raw input. Throws RequestError if there is none.
  [[nodiscard]] std::string_view next() {
    while (message_.next()) {
      if (message_.field() == infer_fields::request::kRawInputs) return message_.bytes();
    }
    refuse("raw_input_contents has fewer elements than the request has inputs");
  }

 private:
  ProtoReader message_;
};

/// Reads one input, whose elements are in shared memory or, if `raw` is not null, in `raw`. Returns whether they were
/// in `raw`.
bool read_input(ProtoReader message, InferBuilder& builder, const SharedRegions& regions, RawInputs* raw) {
  std::string_view name;
  std::string_view type;
  std::array<std::int64_t, kDimensionsMax> shape{};
  std::size_t dimensions = 0;
  bool has_contents = false;
  NamedRange named;
  for (ProtoReader fields = message; fields.next();) {
    switch (fields.field()) {
      case infer_fields::input::kName: name = fields.text(); break;
      case infer_fields::input::kType: type = fields.text(); break;
      case infer_fields::input::kParameters: note_range(read_parameter(fields.message()), named); break;
      case infer_fields::input::kContents: has_contents = true; break;
      case infer_fields::input::kShape:
        fields.each_number([&](std::uint64_t dimension) {
          if (dimensions == kDimensionsMax) refuse("an input has too many dimensions");
          shape[dimensions++] = static_cast<std::int64_t>(dimension);
        });
        break;
      default: break;
    }
  }
  const Tensor& tensor = builder.add_input(name, type, std::span(shape).first(dimensions));
  if (const SharedRange range = regions.find(named, "input", name); range.region) {
    if (has_contents) refuse(fmt::format("input \"{}\" is in shared memory, so it must not have contents", name));
    builder.add_elements(range);
    return false;
  }
  if (raw != nullptr) {
    if (has_contents) refuse(fmt::format("input \"{}\" has contents, but the request has raw_input_contents", name));
    builder.add_elements(std::as_bytes(std::span(raw->next())));
    return true;
  }
  Contents contents(tensor, builder.input_bytes());
  for (ProtoReader fields = message; fields.next();) {
    if (fields.field() == infer_fields::input::kContents) contents.read(fields.message());
  }
  builder.add_elements(contents.elements());
  return false;
}

void read_output(ProtoReader message, InferBuilder& builder, const SharedRegions& regions) {
  std::string_view name;
  NamedRange named;
  while (message.next()) {
    if (message.field() == infer_fields::wanted_output::kName) name = message.text();
    if (message.field() == infer_fields::wanted_output::kParameters) {
      note_range(read_parameter(message.message()), named);
    }
  }
  builder.add_output(name, true, regions.find(named, "output", name));
}

std::shared_ptr<Inference> read_tensors(ServedModel& served, const Head& head, std::string_view message,
                                        const SharedRegions& regions, InferencePool& pool) {
  InferBuilder builder(served, pool);
  builder.set_id(head.id);
  RawInputs raw{ProtoReader(message)};
  std::size_t raw_read = 0;
  for (ProtoReader fields(message); fields.next();) {
    if (fields.field() == infer_fields::request::kInputs) {
      if (read_input(fields.message(), builder, regions, head.raw_inputs > 0 ? &raw : nullptr)) ++raw_read;
    } else if (fields.field() == infer_fields::request::kOutputs) {
      read_output(fields.message(), builder, regions);
    }
  }
  if (head.raw_inputs > raw_read) {
    refuse(fmt::format("raw_input_contents has {} elements, but the request has {} inputs that need one",
                       head.raw_inputs, raw_read));
  }
  builder.set_timeout(head.timeout);
  builder.set_priority(head.priority);
  return builder.finish(true);
}

}  // namespace

ServedModel& find_model(const Models& models, std::string_view name, std::string_view version) {
  ServedModel& served = models.require(name);
  if (!version.empty() && version != served.model.version) {
    throw RequestError(kNotFound, fmt::format("model {} has no version '{}'", name, version));
  }
  return served;
}

std::shared_ptr<Inference> read_infer_request(const Models& models, std::string_view message,
                                              const SharedRegions& regions, InferencePool& pool) {
  const Head head = read_head(ProtoReader(message));
  ServedModel& served = find_model(models, head.name, head.version);
  return read_for(served, [&] { return read_tensors(served, head, message, regions, pool); });
}

std::string_view id_of(std::string_view message) noexcept {
  std::string_view id;
  try {
    for (ProtoReader fields(message); fields.next();) {
      if (fields.field() == infer_fields::request::kId) id = fields.text();
    }
  } catch (const std::exception&) {  // the caller has already found the error
    return {};
  }
  return id;
}

}  // namespace headrace::wire::grpc
