#pragma once

// mlp() is an operator that runs a small dense network on one vector at a time, with its weights in the device's
// memory.
//
//     headrace::operators::MlpLayer hidden{.inputs = 2, .outputs = 2, .weights = {1, 0, 0, 1}};
//     headrace::operators::MlpLayer last{.inputs = 2, .outputs = 1, .weights = {1, -1}, .biases = {0.5F}};
//     headrace::serve::Operator network = headrace::operators::mlp({hidden, last});
//     headrace::serve::LoadedState state = network.load(headrace::Device::parse("cpu"));
//     const float query[] = {3, 1};
//     float answer[1];  // 2.5 afterwards
//     headrace::serve::answer_here(network, state, std::as_bytes(std::span(query)).data(),
//                                  std::as_writable_bytes(std::span(answer)).data());

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "headrace/operators/detail/elements.hpp"
#include "headrace/serve/operator.hpp"

namespace headrace::operators {

/// What a hidden layer applies to its sums. The last layer's sums are the answer.
enum class Activation : std::uint8_t {
  relu,      ///< 0 for sums below 0; NaN stays NaN.
  identity,  ///< Leaves sums as they are.
};

/// The activation of that name: "relu" or "identity". Throws UsageError that lists the names if there is none.
[[nodiscard]] Activation parse_activation(std::string_view text);

/// One layer of a dense network: y = W x + b.
struct MlpLayer {
  std::uint32_t inputs = 0;         ///< 1 to kMlpWidthMost.
  std::uint32_t outputs = 0;        ///< 1 to kMlpWidthMost.
  std::vector<float> weights = {};  ///< `outputs` rows of `inputs`, as in PyTorch's Linear. Finite.
  std::vector<float> biases = {};   ///< One for each output, finite; or none at all.
};

/// How mlp() stores and runs a network.
struct MlpOptions {
  /// How weights are stored. float16 halves what a query reads; each weight is rounded to the nearest.
  ElementType element = ElementType::float16;
  Activation activation = Activation::relu;  ///< What hidden layers apply to their sums.
  std::uint32_t threads = 256;               ///< Threads of the one block that answers a query: 1 to 1024.
};

/// Most inputs or outputs of a layer.
inline constexpr std::uint32_t kMlpWidthMost = 1024;
/// Most layers.
inline constexpr std::uint32_t kMlpLayersMost = 8;
/// Parts of a sum over the inputs: unit u belongs to part u % kMlpParts, so that a layer with few outputs occupies more
/// threads.
inline constexpr std::uint32_t kMlpParts = 4;

/// A layer in a device's memory. Weights are stored unit by unit: unit u of row r is number u * row_count() + r, so
/// that threads which take neighbouring rows read neighbouring units.
struct MlpStoredLayer {
  const std::byte* weights;  ///< Padded with zeros.
  const float* biases;       ///< One for each stored row, padded with zeros.
  std::uint32_t units;       ///< Units of a row.
  std::uint32_t outputs;     ///< Rows without padding.

  /// Stored rows, padding included.
  [[nodiscard]] HEADRACE_HD std::uint32_t row_count() const { return whole_units(outputs); }
};

/// A network in a device's memory, as kernels need it.
struct MlpState {
  MlpStoredLayer layers[kMlpLayersMost];  ///< The first layer_count are used.
  std::uint32_t layer_count;              ///< Layers.
  std::uint32_t inputs;                   ///< Inputs of the first layer.
  std::uint32_t outputs;                  ///< Outputs of the last layer.
  ElementType element;                    ///< How weights are stored.
  Activation activation;                  ///< What hidden layers apply to their sums.
};

/// A small dense network, one vector at a time: as many float32 as the first layer has inputs give as many as the last
/// has outputs. Weights stay in the device's memory, where its cache keeps them; activations are in a block's shared
/// memory.
///
/// Sums are float32, each step of them one fused multiply-add, in an order that the network alone decides: input 8u + i
/// is added to sum number i of part u % 4 in the order of u, the eight sums of a part by sum_of_unit(), the four parts
/// as (0 + 1) + (2 + 3), and the bias last. Answers are bit-equal on every device, under every schedule and for any
/// number of threads, but for the bits of a NaN.
struct Mlp {
  static constexpr const char* kName = "mlp";   ///< For make_operator().
  static constexpr bool kAnswersInline = true;  ///< For Plan::answer_inline.

  using Query = float;     ///< One for each input.
  using Answer = float;    ///< One for each output.
  using State = MlpState;  ///< The network.

  /// Answers one query with one block; further blocks do nothing.
  template <class Group>
  HEADRACE_HD static void answer(Group group, const State& state, const Query* query, Answer* answer) {
    if (group.block() != 0) return;
    Memory& memory = group.template shared<Memory>();
    const std::uint32_t padded = state.layers[0].units * kUnit;
    for (std::uint32_t i = group.rank(); i < padded; i += group.size()) {
      memory.values[i] = i < state.inputs ? query[i] : 0.0F;
    }
    group.sync();
    for (std::uint32_t number = 0; number < state.layer_count; ++number) {
      const MlpStoredLayer& layer = state.layers[number];
      if (state.element == ElementType::float16) {
        add_parts<ElementType::float16>(group, layer, memory);
      } else {
        add_parts<ElementType::float32>(group, layer, memory);
      }
      group.sync();
      const bool last = number + 1 == state.layer_count;
      const std::uint32_t count = last ? state.outputs : layer.row_count();
      for (std::uint32_t row = group.rank(); row < count; row += group.size()) {
        const float sum = (memory.parts[0][row] + memory.parts[1][row]) + (memory.parts[2][row] + memory.parts[3][row]);
        const float value = sum + layer.biases[row];
        if (last) {
          answer[row] = value;
        } else {
          const bool none = row >= layer.outputs || (state.activation == Activation::relu && value < 0.0F);
          memory.values[row] = none ? 0.0F : value;  // for padding, too: 0 times infinity is not zero
        }
      }
      group.sync();
    }
  }

 private:
  struct Memory {
    alignas(16) float values[kMlpWidthMost];  ///< The input of the layer.
    float parts[kMlpParts][kMlpWidthMost];
  };

  /// The parts of a layer's sums. A thread takes a part of some rows at a time.
  template <ElementType Type, class Group>
  HEADRACE_HD static void add_parts(Group group, const MlpStoredLayer& layer, Memory& memory) {
    constexpr std::uint32_t kRows = Group::kLanes > 1 ? kUnit : 1;
    const std::uint32_t row_count = layer.row_count();
    const std::uint32_t rows = row_count / kRows;
    for (std::uint32_t item = group.rank(); item < kMlpParts * rows; item += group.size()) {
      const std::uint32_t part = item / rows;
      const std::uint32_t row = item % rows * kRows;
      float sums[kRows][kUnit] = {};
#if defined(__CUDA_ARCH__)
#pragma unroll 8
#endif
      for (std::uint32_t unit = part; unit < layer.units; unit += kMlpParts) {
        for (std::uint32_t r = 0; r < kRows; ++r) {
          add_products<Type>(layer.weights, std::size_t{unit} * row_count + row + r, memory.values + unit * kUnit,
                             sums[r]);
        }
      }
      for (std::uint32_t r = 0; r < kRows; ++r) memory.parts[part][row + r] = sum_of_unit(sums[r]);
    }
  }
};

/// The operator that answers with a network of 1 to kMlpLayersMost layers, each with as many inputs as the one before
/// has outputs. Its samples are uniform in [-1, 1). It also keeps the weights in host memory, as they are stored.
/// Throws UsageError that names the layer and the error: sizes that do not match, or weights or biases that are not
/// finite, also once rounded to float16.
[[nodiscard]] serve::Operator mlp(const std::vector<MlpLayer>& layers, const MlpOptions& options = {});

}  // namespace headrace::operators
