#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "bindings.hpp"
#include "gil.hpp"
#include "headrace/operators/mlp.hpp"
#include "headrace/operators/topk.hpp"

namespace nb = nanobind;
using namespace nb::literals;

/// Operators over dense matrices; headrace/operators/dense.py checks and converts their arguments.
namespace headrace::python {

namespace {

using Matrix = nb::ndarray<const float, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Vector = nb::ndarray<const float, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

operators::MlpLayer layer_of(nb::handle given) {
  const auto pair = nb::cast<nb::tuple>(given);
  const auto weights = nb::cast<Matrix>(pair[0]);
  operators::MlpLayer layer;
  layer.outputs = static_cast<std::uint32_t>(std::min<std::size_t>(weights.shape(0), UINT32_MAX));
  layer.inputs = static_cast<std::uint32_t>(std::min<std::size_t>(weights.shape(1), UINT32_MAX));
  layer.weights.assign(weights.data(), weights.data() + weights.size());
  if (!pair[1].is_none()) {
    const auto biases = nb::cast<Vector>(pair[1]);
    layer.biases.assign(biases.data(), biases.data() + biases.size());
  }
  return layer;
}

void bind_mlp(nb::module_& module) {
  module.def(
      "mlp_operator",
      [](const nb::list& layers, const std::string& activation, const std::string& dtype, std::uint32_t threads) {
        std::vector<operators::MlpLayer> made;
        for (const nb::handle layer : layers) made.push_back(layer_of(layer));
        const operators::MlpOptions options{.element = operators::parse_element_type(dtype),
                                            .activation = operators::parse_activation(activation),
                                            .threads = threads};
        const GilRelease released;
        return operators::mlp(made, options);
      },
      "layers"_a, "activation"_a, "dtype"_a, "threads"_a,
      nb::sig("def mlp_operator(layers: list[tuple[numpy.typing.NDArray[numpy.float32], "
              "numpy.typing.NDArray[numpy.float32] | None]], activation: str, dtype: str, threads: int) -> Operator"),
      "A dense network: for each layer its weights (outputs x inputs) and its biases or None. See operators.mlp().");
}

void bind_topk(nb::module_& module) {
  module.def(
      "topk_operator",
      [](const nb::ndarray<nb::ro, nb::ndim<2>, nb::c_contig, nb::device::cpu>& matrix, std::uint32_t k,
         const std::string& metric, const std::string& dtype, std::uint32_t threads) {
        const bool half = matrix.itemsize() == sizeof(std::uint16_t);
        const operators::TopkMatrix given{
            .data = matrix.data(),
            .element = half ? operators::ElementType::float16 : operators::ElementType::float32,
            .row_count = matrix.shape(0),
            .column_count = static_cast<std::uint32_t>(std::min<std::size_t>(matrix.shape(1), UINT32_MAX))};
        const operators::TopkOptions options{.k = k,
                                             .metric = operators::parse_metric(metric),
                                             .element = operators::parse_element_type(dtype),
                                             .threads = threads};
        const GilRelease released;
        return operators::topk(given, options);
      },
      "matrix"_a, "k"_a, "metric"_a, "dtype"_a, "threads"_a,
      nb::sig("def topk_operator(matrix: numpy.typing.NDArray[numpy.float32] | numpy.typing.NDArray[numpy.float16], k: "
              "int, metric: str, dtype: str, threads: int) -> Operator"),
      "The best rows of a matrix of float32 or float16. See operators.topk().");
}

}  // namespace

void bind_dense(nb::module_& module) {
  bind_mlp(module);
  bind_topk(module);
}

}  // namespace headrace::python
