#include "operators/mlp/stored_mlp.hpp"

#include <fmt/format.h>

#include <utility>

#include "headrace/base/error.hpp"
#include "operators/sample.hpp"

namespace headrace::operators {

namespace {

void require_sound(const std::vector<MlpLayer>& layers) {
  require_in_range("mlp: the number of layers", layers.size(), 1, kMlpLayersMost);
  for (std::size_t number = 0; number < layers.size(); ++number) {
    const MlpLayer& layer = layers[number];
    require_in_range(fmt::format("mlp: inputs of layer {}", number), layer.inputs, 1, kMlpWidthMost);
    require_in_range(fmt::format("mlp: outputs of layer {}", number), layer.outputs, 1, kMlpWidthMost);
    if (number > 0 && layer.inputs != layers[number - 1].outputs) {
      throw UsageError(fmt::format("mlp: layer {} has {} inputs, but layer {} before it has {} outputs", number,
                                   layer.inputs, number - 1, layers[number - 1].outputs));
    }
    if (layer.weights.size() != std::size_t{layer.inputs} * layer.outputs) {
      throw UsageError(fmt::format("mlp: layer {} has {} weights, not {} x {}", number, layer.weights.size(),
                                   layer.outputs, layer.inputs));
    }
    if (!layer.biases.empty() && layer.biases.size() != layer.outputs) {
      throw UsageError(
          fmt::format("mlp: layer {} has {} biases, but {} outputs", number, layer.biases.size(), layer.outputs));
    }
  }
}

std::size_t stored_weights(const MlpLayer& layer) {
  return std::size_t{whole_units(layer.inputs)} * whole_units(layer.outputs);
}

/// The start of each layer, and the end of the last.
template <class Size>
std::vector<std::size_t> begins(const std::vector<MlpLayer>& layers, Size size) {
  std::vector<std::size_t> first{0};
  for (const MlpLayer& layer : layers) first.push_back(first.back() + size(layer));
  return first;
}

/// The start of each layer's weights. Throws as mlp() does, before any memory is allocated.
std::vector<std::size_t> weight_begins(const std::vector<MlpLayer>& layers) {
  require_sound(layers);
  return begins(layers, stored_weights);
}

}  // namespace

StoredMlp::StoredMlp(const std::vector<MlpLayer>& layers, const MlpOptions& options)
    : first_weights_(weight_begins(layers)),
      first_biases_(begins(layers, [](const MlpLayer& layer) { return std::size_t{whole_units(layer.outputs)}; })),
      weights_(options.element, first_weights_.back()),
      biases_(ElementType::float32, first_biases_.back()) {
  state_.layer_count = static_cast<std::uint32_t>(layers.size());
  state_.inputs = layers.front().inputs;
  state_.outputs = layers.back().outputs;
  state_.element = options.element;
  state_.activation = options.activation;
  for (std::size_t number = 0; number < layers.size(); ++number) {
    store(number, layers[number], first_weights_[number], first_biases_[number]);
  }
}

void StoredMlp::store(std::size_t number, const MlpLayer& layer, std::size_t first_weight, std::size_t first_bias) {
  const std::uint32_t row_count = whole_units(layer.outputs);
  state_.layers[number].units = whole_units(layer.inputs) / kUnit;
  state_.layers[number].outputs = layer.outputs;
  for (std::uint32_t row = 0; row < layer.outputs; ++row) {
    for (std::uint32_t column = 0; column < layer.inputs; ++column) {
      const float weight = layer.weights[std::size_t{row} * layer.inputs + column];
      const std::size_t unit = std::size_t{column / kUnit} * row_count + row;
      if (weights_.set(first_weight + unit * kUnit + column % kUnit, weight)) continue;
      throw UsageError(fmt::format("mlp: weight ({}, {}) of layer {} is {}, which is not finite as {}", row, column,
                                   number, weight, to_string(weights_.type())));
    }
    if (layer.biases.empty() || biases_.set(first_bias + row, layer.biases[row])) continue;
    throw UsageError(
        fmt::format("mlp: bias {} of layer {} is {}, which is not finite", row, number, layer.biases[row]));
  }
}

serve::LoadedState StoredMlp::load(std::shared_ptr<const StoredMlp> self, Device device) const {
  struct Owners {
    std::shared_ptr<const StoredMlp> network;
    Placed weights;
    Placed biases;
  };
  const auto owners = std::make_shared<Owners>(
      Owners{std::move(self), place_on(device, weights_.bytes(), "copying the weights of mlp to a device"),
             place_on(device, biases_.bytes(), "copying the biases of mlp to a device")});
  MlpState state = state_;
  const std::size_t element_bytes = weights_.type() == ElementType::float16 ? sizeof(std::uint16_t) : sizeof(float);
  for (std::size_t number = 0; number < state.layer_count; ++number) {
    state.layers[number].weights = owners->weights.data + first_weights_[number] * element_bytes;
    state.layers[number].biases = reinterpret_cast<const float*>(owners->biases.data) + first_biases_[number];
  }
  return serve::make_state(state, owners);
}

Activation parse_activation(std::string_view text) {
  if (text == "relu") return Activation::relu;
  if (text == "identity") return Activation::identity;
  throw UsageError(fmt::format("an activation must be relu or identity, not '{}'", text));
}

std::string float32_type(std::uint32_t count) { return fmt::format("('<f4', ({},))", count); }

}  // namespace headrace::operators
