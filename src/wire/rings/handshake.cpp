#include "wire/rings/handshake.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace headrace::wire::rings {

namespace {

constexpr std::string_view kHelloMagic = "HRrings?";
constexpr std::string_view kWelcomeMagic = "HRrings!";
constexpr std::size_t kNameMost = 64;
constexpr std::size_t kTensorsMost = 4096;
constexpr std::size_t kDimensionsMost = 64;

class MessageWriter {
 public:
  explicit MessageWriter(std::string_view magic) : bytes_(magic) {}
  template <class T>
  MessageWriter& number(T value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof(value));
    return *this;
  }
  MessageWriter& text(std::string_view text) {
    number(static_cast<std::uint32_t>(text.size()));
    bytes_.append(text);
    return *this;
  }
  [[nodiscard]] std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

/// Reads a message. After a failure, it returns only zeros and empty strings.
class MessageReader {
 public:
  MessageReader(std::string_view bytes, std::string_view magic) : rest_(bytes), ok_(bytes.starts_with(magic)) {
    if (ok_) rest_.remove_prefix(magic.size());
  }
  template <class T>
  [[nodiscard]] T number() {
    T value{};
    if (!ok_ || rest_.size() < sizeof(value)) {
      ok_ = false;
      return value;
    }
    std::copy_n(rest_.begin(), sizeof(value), reinterpret_cast<char*>(&value));
    rest_.remove_prefix(sizeof(value));
    return value;
  }
  [[nodiscard]] std::string text() {
    const auto size = number<std::uint32_t>();
    if (!ok_ || rest_.size() < size) {
      ok_ = false;
      return {};
    }
    std::string text(rest_.substr(0, size));
    rest_.remove_prefix(size);
    return text;
  }
  /// Whether all reads so far have succeeded.
  [[nodiscard]] bool ok() const noexcept { return ok_; }
  /// The same, and nothing is left to read.
  [[nodiscard]] bool done() const noexcept { return ok_ && rest_.empty(); }

 private:
  std::string_view rest_;
  bool ok_;
};

std::optional<Tensor> read_tensor(MessageReader& reader) {
  Tensor tensor;
  tensor.name = reader.text();
  const auto type = reader.number<std::uint8_t>();
  if (type > static_cast<std::uint8_t>(DataType::fp64)) return std::nullopt;
  tensor.type = static_cast<DataType>(type);
  tensor.offset = reader.number<std::uint64_t>();
  const auto dimensions = reader.number<std::uint32_t>();
  if (dimensions > kDimensionsMost) return std::nullopt;
  for (std::uint32_t i = 0; i < dimensions; ++i) tensor.shape.push_back(reader.number<std::int64_t>());
  return tensor;
}

}  // namespace

std::string encode(const Hello& hello) {
  return MessageWriter(kHelloMagic).number(hello.abi).number(hello.slots).text(hello.model).take();
}

std::string encode(const Welcome& welcome) {
  MessageWriter writer(kWelcomeMagic);
  writer.number(welcome.abi).text(welcome.failure).number(static_cast<std::uint8_t>(welcome.code));
  writer.number(welcome.layout.slots).number(welcome.layout.query_bytes).number(welcome.layout.answer_bytes);
  writer.text(welcome.model).text(welcome.version).text(welcome.query_type).text(welcome.answer_type);
  writer.number(static_cast<std::uint32_t>(welcome.inputs.size()));
  for (const Tensor& tensor : welcome.inputs) {
    writer.text(tensor.name).number(static_cast<std::uint8_t>(tensor.type));
    writer.number(static_cast<std::uint64_t>(tensor.offset)).number(static_cast<std::uint32_t>(tensor.shape.size()));
    for (const std::int64_t dimension : tensor.shape) writer.number(dimension);
  }
  return writer.take();
}

std::optional<Hello> decode_hello(std::string_view message) {
  MessageReader reader(message, kHelloMagic);
  Hello hello;
  hello.abi = reader.number<std::uint32_t>();
  if (reader.ok() && hello.abi != kRingAbi) return hello;
  hello.slots = reader.number<std::uint32_t>();
  hello.model = reader.text();
  if (!reader.done()) return std::nullopt;
  return hello;
}

std::optional<Welcome> decode_welcome(std::string_view message) {
  MessageReader reader(message, kWelcomeMagic);
  Welcome welcome;
  welcome.abi = reader.number<std::uint32_t>();
  welcome.failure = reader.text();  // at the same place in every version
  if (reader.ok() && welcome.abi != kRingAbi) return welcome;
  const auto code = reader.number<std::uint8_t>();
  if (code > static_cast<std::uint8_t>(Errc::hung)) return std::nullopt;
  welcome.code = static_cast<Errc>(code);
  welcome.layout.slots = reader.number<std::uint32_t>();
  welcome.layout.query_bytes = reader.number<std::uint64_t>();
  welcome.layout.answer_bytes = reader.number<std::uint64_t>();
  welcome.model = reader.text();
  welcome.version = reader.text();
  welcome.query_type = reader.text();
  welcome.answer_type = reader.text();
  const auto tensors = reader.number<std::uint32_t>();
  if (tensors > kTensorsMost) return std::nullopt;
  for (std::uint32_t i = 0; i < tensors; ++i) {
    std::optional<Tensor> tensor = read_tensor(reader);
    if (!tensor) return std::nullopt;
    welcome.inputs.push_back(*std::move(tensor));
  }
  if (!reader.done()) return std::nullopt;
  return welcome;
}

bool is_server_name(std::string_view name) noexcept {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
           c == '-';
  };
  return !name.empty() && name.size() <= kNameMost && std::ranges::all_of(name, allowed);
}

}  // namespace headrace::wire::rings
