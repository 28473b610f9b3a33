#include "arrays.hpp"

#include <fmt/format.h>

#include "headrace/base/error.hpp"

namespace nb = nanobind;

namespace headrace::python {

BytesView::BytesView(nb::handle object, const char* what) : what_(what) {
  if (PyObject_CheckBuffer(object.ptr()) == 0) {
    const nb::str type = nb::repr(object.type());
    throw nb::type_error(fmt::format("{} must be a NumPy array or another buffer, not {}", what, type.c_str()).c_str());
  }
  if (PyObject_GetBuffer(object.ptr(), &view_, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT) != 0) {
    PyErr_Clear();
    throw UsageError(
        fmt::format("{} must be contiguous in memory; pass numpy.ascontiguousarray({}) to copy it", what, what));
  }
}

std::size_t BytesView::count(std::size_t item_bytes) const {
  if (bytes().size() % item_bytes != 0) {
    throw UsageError(
        fmt::format("{}: {} bytes are not a whole number of items of {} bytes", what_, bytes().size(), item_bytes));
  }
  return bytes().size() / item_bytes;
}

void BytesView::require_one(std::size_t item_bytes) const {
  if (bytes().size() != item_bytes) {
    throw UsageError(fmt::format("{}: this operator takes {} bytes, not {}", what_, item_bytes, bytes().size()));
  }
}

}  // namespace headrace::python
