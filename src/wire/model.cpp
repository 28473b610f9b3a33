#include "headrace/wire/model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "headrace/base/error.hpp"
#include "wire/served_model.hpp"

namespace headrace::wire {

namespace {

constexpr std::size_t kNameMax = 128;
constexpr std::uint32_t kBatchMax = 1U << 20;

bool is_name(std::string_view text) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
           c == '-';
  };
  return !text.empty() && text.size() <= kNameMax && text != "." && text != ".." && std::ranges::all_of(text, allowed);
}

/// Checks one side of a model: `kind` is "input" or "output", `whole` the bytes of a query or an answer.
void check_tensors(const Model& model, std::vector<Tensor> tensors, std::string_view kind, std::size_t whole) {
  const auto refuse = [&](const std::string& why) { throw UsageError(fmt::format("model {}: {}", model.name, why)); };
  if (tensors.empty()) refuse(fmt::format("it has no {}", kind));
  for (const Tensor& tensor : tensors) {
    if (tensor.name.empty() || tensor.name.size() > kNameMax)
      refuse(fmt::format("an {} needs a name of 1 to 128 bytes", kind));
    std::size_t most = whole / element_bytes(tensor.type);
    for (const std::int64_t dimension : tensor.shape) {
      if (dimension < 1)
        refuse(fmt::format("{} '{}' has a dimension of {}; the least is 1", kind, tensor.name, dimension));
      most /= static_cast<std::size_t>(dimension);
    }
    if (most == 0 || tensor.offset > whole || tensor.bytes() > whole - tensor.offset) {
      refuse(fmt::format("{} '{}' does not fit in the operator's {} bytes", kind, tensor.name, whole));
    }
  }
  std::ranges::sort(tensors, {}, &Tensor::name);
  const auto twice = std::ranges::adjacent_find(tensors, {}, &Tensor::name);
  if (twice != tensors.end()) refuse(fmt::format("two {}s are called '{}'", kind, twice->name));
  std::ranges::sort(tensors, {}, &Tensor::offset);
  const auto overlap = std::ranges::adjacent_find(
      tensors, [](const Tensor& a, const Tensor& b) { return a.offset + a.bytes() > b.offset; });
  if (kind == "input" && overlap != tensors.end()) {
    refuse(fmt::format("inputs '{}' and '{}' overlap", overlap->name, std::next(overlap)->name));
  }
}

}  // namespace

void check_model(const Model& model) {
  constexpr std::string_view kAllowed = "1 to 128 letters, digits, '.', '_' and '-'";
  if (!is_name(model.name))
    throw UsageError(fmt::format("the model name '{}' is not valid: it must have {}", model.name, kAllowed));
  if (!is_name(model.version)) {
    throw UsageError(
        fmt::format("model {}: the version '{}' is not valid: it must have {}", model.name, model.version, kAllowed));
  }
  if (model.engine == nullptr) throw UsageError(fmt::format("model {} has no engine", model.name));
  if (model.batch_max < 1 || model.batch_max > kBatchMax) {
    throw UsageError(fmt::format("model {}: batch_max must be 1 to {}", model.name, kBatchMax));
  }
  if (model.waiting_max > kWaitingMost) {
    throw UsageError(fmt::format("model {}: waiting_max must be at most {}", model.name, kWaitingMost));
  }
  check_tensors(model, model.inputs, "input", model.engine->op().query_bytes);
  check_tensors(model, model.outputs, "output", model.engine->op().answer_bytes);
}

}  // namespace headrace::wire
