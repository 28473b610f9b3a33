#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "bindings.hpp"
#include "gil.hpp"
#include "headrace/base/error.hpp"
#include "headrace/operators/lookup.hpp"
#include "kept.hpp"
#include "span_handle.hpp"

namespace nb = nanobind;
using namespace nb::literals;

/// The operator that pools rows; headrace/operators/lookup_operator.py checks and converts its arguments.
namespace headrace::python {

namespace {

using Counts = nb::ndarray<const std::uint64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

operators::LookupOptions options_of(std::uint32_t most, const std::string& pooling, bool weighted,
                                    const std::string& dtype, std::optional<double> exponent, std::uint32_t threads) {
  return {.most = most,
          .pooling = operators::parse_pooling(pooling),
          .weighted = weighted,
          .element = operators::parse_element_type(dtype),
          .exponent = exponent,
          .threads = threads};
}

/// A Python span that an operator uses: kept alive, and counted like an array over it.
class UsedSpan {
 public:
  explicit UsedSpan(nb::object span) : handle_(&nb::cast<SpanHandle&>(span)), kept_(keep(std::move(span))) {
    handle_->device_view_starts();
  }
  UsedSpan(const UsedSpan&) = delete;
  UsedSpan& operator=(const UsedSpan&) = delete;
  ~UsedSpan() {
    try {
      const GilAcquire acquired;
      handle_->device_view_ends();
    } catch (const Exception&) {  // NOLINT(bugprone-empty-catch): the interpreter has ended
    }
  }

  [[nodiscard]] const Span& span() const noexcept { return handle_->span(); }

 private:
  SpanHandle* handle_;
  std::shared_ptr<const void> kept_;
};

serve::Operator of_table(const nb::ndarray<nb::ro, nb::ndim<2>, nb::c_contig, nb::device::cpu>& table,
                         std::uint32_t most, const std::string& pooling, bool weighted, const std::string& dtype,
                         std::optional<std::size_t> device_bytes, const std::optional<Counts>& counts,
                         std::optional<double> exponent, std::uint32_t threads) {
  const bool half = table.itemsize() == sizeof(std::uint16_t);
  const operators::LookupTable given{
      .data = table.data(),
      .element = half ? operators::ElementType::float16 : operators::ElementType::float32,
      .row_count = table.shape(0),
      .column_count = static_cast<std::uint32_t>(std::min<std::size_t>(table.shape(1), UINT32_MAX))};
  operators::LookupOptions options = options_of(most, pooling, weighted, dtype, exponent, threads);
  options.device_bytes = device_bytes;
  if (counts) options.counts = {counts->data(), counts->size()};
  const GilRelease released;
  return operators::lookup(given, options);
}

serve::Operator of_span(nb::handle_t<SpanHandle> span, std::uint64_t rows, std::uint32_t columns, std::uint32_t most,
                        const std::string& pooling, bool weighted, const std::string& dtype,
                        std::optional<double> exponent, std::uint32_t threads) {
  const auto used = std::make_shared<UsedSpan>(nb::borrow(span));
  const std::shared_ptr<const Span> place(used, &used->span());
  return operators::lookup(place, rows, columns, options_of(most, pooling, weighted, dtype, exponent, threads));
}

}  // namespace

void bind_lookup(nb::module_& module) {
  module.def(
      "lookup_operator", &of_table, "table"_a, "most"_a, "pooling"_a, "weighted"_a, "dtype"_a, "device_bytes"_a.none(),
      "counts"_a.none(), "exponent"_a.none(), "threads"_a,
      nb::sig("def lookup_operator(table: numpy.typing.NDArray[numpy.float32] | numpy.typing.NDArray[numpy.float16], "
              "most: int, pooling: str, weighted: bool, dtype: str, device_bytes: int | None, counts: "
              "numpy.typing.NDArray[numpy.uint64] | None, exponent: float | None, threads: int) -> Operator"),
      "Pooled rows of a table of float32 or float16, which is copied. See operators.lookup().");
  module.def("lookup_operator_of_span", &of_span, "span"_a, "rows"_a, "columns"_a, "most"_a, "pooling"_a, "weighted"_a,
             "dtype"_a, "exponent"_a.none(), "threads"_a,
             nb::sig("def lookup_operator_of_span(span: Span, rows: int, columns: int, most: int, pooling: str, "
                     "weighted: bool, dtype: str, exponent: float | None, threads: int) -> Operator"),
             "Pooled rows in a span, which the operator keeps. See operators.lookup().");
}

}  // namespace headrace::python
