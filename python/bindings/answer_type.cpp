#include "answer_type.hpp"

#include <nanobind/stl/string.h>

#include <fmt/format.h>

#include <utility>

#include "arrays.hpp"
#include "headrace/base/error.hpp"

namespace nb = nanobind;

namespace headrace::python {

AnswerType::AnswerType(const std::string& type, std::size_t bytes) : bytes_(bytes) {
  array_class_ = nb::module_::import_("numpy").attr("ndarray");
  const nb::object dtype = nb::module_::import_("headrace.dtypes").attr("answer_dtype_of")(type, bytes_);
  base_ = dtype.attr("base");
  shape_ = dtype.attr("shape");
}

nb::object AnswerType::array(std::unique_ptr<std::uint8_t[]> answers, std::size_t count) const {
  return nb::cast(to_numpy(std::move(answers), count * bytes_))
      .attr("view")(base_)
      .attr("reshape")(nb::make_tuple(count) + shape_);
}

nb::object AnswerType::copy(const std::uint8_t* answers, std::size_t count) const {
  const auto size = static_cast<Py_ssize_t>(count * bytes_);
  const nb::object held =
      nb::steal(PyByteArray_FromStringAndSize(reinterpret_cast<const char*>(answers), size));  // writable
  if (!held.is_valid()) throw nb::python_error();
  return array_class_(nb::make_tuple(count) + shape_, base_, held);
}

std::uint8_t status_byte(Status status) noexcept {
  return status ? std::uint8_t{0} : static_cast<std::uint8_t>(1 + static_cast<unsigned>(status.error().code));
}

void throw_failed(Errc code, const serve::Engine& engine) {
  if (code == Errc::device_fault) {
    const bool on_host = engine.device().properties().host_cores;
    throw DeviceError(code, fmt::format("asking a query: operator {} could not answer this query or an earlier one{}",
                                        engine.op().name, on_host ? "" : " (device fault)"));
  }
  throw_error("asking a query", Error{code, 0});
}

}  // namespace headrace::python
