#include "csr_handle.hpp"
#include "gil.hpp"

#include <fmt/format.h>

#include <chrono>
#include <utility>

#include "arrays.hpp"
#include "headrace/base/detail/clock.hpp"
#include "headrace/base/error.hpp"

namespace nb = nanobind;

namespace headrace::python {

namespace {

std::string type_name(const AnyArray& array) {
  const auto code = static_cast<nb::dlpack::dtype_code>(array.dtype().code);
  const char* kind = code == nb::dlpack::dtype_code::Float  ? "float"
                     : code == nb::dlpack::dtype_code::Int  ? "int"
                     : code == nb::dlpack::dtype_code::UInt ? "uint"
                                                            : "other";
  return fmt::format("{}{}", kind, array.dtype().bits);
}

/// The contiguous values of a one-dimensional array. Throws UsageError for other arrays.
template <class T>
std::span<const T> values_of(const AnyArray& array, const char* what) {
  if (array.ndim() != 1) throw UsageError(fmt::format("{} must have one dimension, not {}", what, array.ndim()));
  if (array.dtype() != nb::dtype<T>()) {
    throw UsageError(fmt::format("{} is {}, but must be {}; convert it with .astype()", what, type_name(array),
                                 std::is_same_v<T, float>    ? "float32"
                                 : std::is_same_v<T, double> ? "float64"
                                                             : "int32 or int64"));
  }
  if (array.shape(0) > 1 && array.stride(0) != 1) {
    throw UsageError(
        fmt::format("{} must be contiguous in memory; pass numpy.ascontiguousarray({}) to copy it", what, what));
  }
  return {static_cast<const T*>(array.data()), array.shape(0)};
}

/// Row pointers as 64-bit numbers; there are few of them compared with the entries.
std::vector<std::int64_t> row_starts(const AnyArray& indptr) {
  if (indptr.dtype() == nb::dtype<std::int32_t>()) {
    const auto given = values_of<std::int32_t>(indptr, "indptr");
    return {given.begin(), given.end()};
  }
  const auto given = values_of<std::int64_t>(indptr, "indptr");
  return {given.begin(), given.end()};
}

}  // namespace

template <class Value, class Column>
CsrHandle::Typed<Value> CsrHandle::make_with(std::vector<Device> devices, const CsrArrays& arrays,
                                             operators::VectorReads reads) {
  const std::vector<std::int64_t> starts = row_starts(arrays.indptr);
  const operators::HostCsr<Value, Column> host{arrays.rows, arrays.columns, starts,
                                               values_of<Column>(arrays.indices, "indices"),
                                               values_of<Value>(arrays.data, "data")};
  const GilRelease released;
  operators::CsrMatrix<Value> matrix(std::move(devices), host, reads);
  Span x = matrix.input_vector();
  Span y = matrix.output_vector();
  return {std::move(matrix), std::move(x), std::move(y)};
}

template <class Value>
CsrHandle::Typed<Value> CsrHandle::make(std::vector<Device> devices, const CsrArrays& arrays,
                                        operators::VectorReads reads) {
  if (arrays.indices.dtype() == nb::dtype<std::int32_t>()) {
    return make_with<Value, std::int32_t>(std::move(devices), arrays, reads);
  }
  return make_with<Value, std::int64_t>(std::move(devices), arrays, reads);
}

CsrHandle::CsrHandle(std::vector<Device> devices, const CsrArrays& arrays, operators::VectorReads reads)
    : typed_([&]() -> decltype(typed_) {
        if (arrays.data.dtype() == nb::dtype<float>()) return make<float>(std::move(devices), arrays, reads);
        if (arrays.data.dtype() == nb::dtype<double>()) return make<double>(std::move(devices), arrays, reads);
        throw UsageError(fmt::format("data is {}, but must be float32 or float64; convert it with .astype()",
                                     type_name(arrays.data)));
      }()) {}

const char* CsrHandle::dtype() const noexcept {
  return std::holds_alternative<Typed<float>>(typed_) ? "float32" : "float64";
}

std::uint64_t CsrHandle::row_count() const noexcept {
  return std::visit([](const auto& typed) { return typed.matrix.row_count(); }, typed_);
}

std::uint64_t CsrHandle::column_count() const noexcept {
  return std::visit([](const auto& typed) { return typed.matrix.column_count(); }, typed_);
}

std::uint64_t CsrHandle::entry_count() const noexcept {
  return std::visit([](const auto& typed) { return typed.matrix.entry_count(); }, typed_);
}

const std::vector<operators::CsrPartUse>& CsrHandle::parts() const noexcept {
  return std::visit([](const auto& typed) -> const auto& { return typed.matrix.parts(); }, typed_);
}

nb::object CsrHandle::multiply(const AnyArray& x, std::uint64_t times) {
  if (times == 0) throw UsageError("times must be at least 1");
  if (times > 1 && row_count() != column_count()) {
    throw UsageError(fmt::format("only a square matrix can be multiplied {} times, not one of {} x {}", times,
                                 row_count(), column_count()));
  }
  return std::visit(
      [&]<class Value>(Typed<Value>& typed) -> nb::object {
        const auto given = values_of<Value>(x, "x");
        if (given.size() != typed.matrix.column_count()) {
          throw UsageError(
              fmt::format("x has {} values, but the matrix has {} columns", given.size(), typed.matrix.column_count()));
        }
        const auto rows = static_cast<std::size_t>(typed.matrix.row_count());
        auto result = make_values<Value>(rows);
        {
          const GilRelease released;
          typed.matrix.copy_in(typed.x, given).or_throw("copying x to the devices");
          typed.loaded = true;
          for (std::uint64_t step = 0; step < times; ++step) {
            if (step > 0) std::swap(typed.x, typed.y);
            typed.matrix.enqueue(typed.x.template as<Value>(), typed.y.template as<Value>()).or_throw("multiplying");
          }
          typed.matrix.copy_out({result.get(), rows}, typed.y).or_throw("multiplying");
        }
        return nb::cast(to_numpy<Value>(std::move(result), rows));
      },
      typed_);
}

std::vector<double> CsrHandle::time(std::uint32_t samples, std::uint32_t repeats) {
  if (samples == 0 || repeats == 0) throw UsageError("samples and repeats must be at least 1");
  const GilRelease released;
  return std::visit(
      [&]<class Value>(Typed<Value>& typed) {
        if (!typed.loaded) {
          const std::vector<Value> zeros(typed.matrix.column_count());
          typed.matrix.copy_in(typed.x, zeros).or_throw("copying x to the devices");
          typed.loaded = true;
        }
        std::vector<double> seconds;
        for (std::uint32_t sample = 0; sample <= samples; ++sample) {
          const Time start = SteadyClock::now();
          for (std::uint32_t repeat = 0; repeat < repeats; ++repeat) {
            typed.matrix.enqueue(typed.x.template as<Value>(), typed.y.template as<Value>()).or_throw("multiplying");
          }
          typed.matrix.wait().or_throw("multiplying");
          const double taken = std::chrono::duration<double>(SteadyClock::now() - start).count();
          if (sample > 0) seconds.push_back(taken / repeats);  // the first one is a warm-up
        }
        return seconds;
      },
      typed_);
}

}  // namespace headrace::python
