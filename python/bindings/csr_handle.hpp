#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "headrace/operators/csr_matrix.hpp"

/// The Python form of a sparse matrix: with either type of values, and its own vectors on the devices.
namespace headrace::python {

using AnyArray = nanobind::ndarray<nanobind::ro, nanobind::device::cpu>;

struct CsrArrays {
  AnyArray indptr;
  AnyArray indices;
  AnyArray data;
  std::uint64_t rows = 0;
  std::uint64_t columns = 0;
};

class CsrHandle {
 public:
  /// Throws UsageError for arrays of other types, and as CsrMatrix and Span do. Called with the GIL.
  CsrHandle(std::vector<Device> devices, const CsrArrays& arrays, operators::VectorReads reads);

  [[nodiscard]] const char* dtype() const noexcept;
  [[nodiscard]] std::uint64_t row_count() const noexcept;
  [[nodiscard]] std::uint64_t column_count() const noexcept;
  [[nodiscard]] std::uint64_t entry_count() const noexcept;
  [[nodiscard]] const std::vector<operators::CsrPartUse>& parts() const noexcept;

  /// A^times x as a new array. If `times` is above 1, the matrix must be square.
  [[nodiscard]] nanobind::object multiply(const AnyArray& x, std::uint64_t times);
  /// Seconds of one y = A x, measured `samples` times over `repeats` in a row. x is the vector that was multiplied
  /// last, or 0.
  [[nodiscard]] std::vector<double> time(std::uint32_t samples, std::uint32_t repeats);

 private:
  template <class Value>
  struct Typed {
    operators::CsrMatrix<Value> matrix;
    Span x;
    Span y;
    bool loaded = false;  ///< Whether x has values.
  };

  template <class Value>
  [[nodiscard]] static Typed<Value> make(std::vector<Device> devices, const CsrArrays& arrays,
                                         operators::VectorReads reads);
  template <class Value, class Column>
  [[nodiscard]] static Typed<Value> make_with(std::vector<Device> devices, const CsrArrays& arrays,
                                              operators::VectorReads reads);

  std::variant<Typed<float>, Typed<double>> typed_;
};

}  // namespace headrace::python
