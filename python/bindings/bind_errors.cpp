#include <nanobind/stl/string.h>

#include <cerrno>
#include <exception>
#include <string>
#include <string_view>
#include <system_error>

#include "bindings.hpp"
#include "convert.hpp"
#include "headrace/base/detail/threads.hpp"
#include "headrace/base/error.hpp"

namespace nb = nanobind;

namespace headrace::python {

namespace {

/// A message in Python's encoding of file names: bytes that are not UTF-8, which a name may contain, become surrogates.
nb::object message_of(const Exception& exception) {
  const std::string_view what = exception.what();
  return nb::steal(PyUnicode_DecodeUTF8(what.data(), static_cast<Py_ssize_t>(what.size()), "surrogateescape"));
}

/// headrace.errors.<type>(what, code, native). The classes are defined in Python, where they are typed and documented.
/// They are looked up each time, because errors are rare.
nb::object make_error(const char* type, const Exception& exception) {
  return nb::module_::import_("headrace.errors")
      .attr(type)(message_of(exception), std::string(to_string(exception.code())), exception.native());
}

void translate(const std::exception_ptr& thrown, void* /*payload*/) {
  try {
    const nb::object error = error_object(thrown);
    PyErr_SetObject(error.type().ptr(), error.ptr());
  } catch (nb::python_error& error) {
    error.restore();
  }
}

}  // namespace

nb::object error_object(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const UsageError& exception) {
    return make_error("UsageError", exception);
  } catch (const DataError& exception) {
    return make_error("DataError", exception);
  } catch (const DeviceError& exception) {
    return make_error("DeviceError", exception);
  } catch (const SystemError& exception) {
    return make_error(exception.native() == ENOENT ? "MissingFileError" : "SystemError", exception);
  } catch (const Exception& exception) {
    return make_error("Error", exception);
  } catch (const std::system_error& exception) {  // from the standard library when starting threads
    const int number = exception.code().value();
    const std::string text = number == EAGAIN ? "no thread could start: " + thread_limits() : exception.what();
    return make_error("SystemError", Exception(Errc::system, text, number));
  }
}

void bind_errors(nb::module_& /*module*/) { nb::register_exception_translator(&translate); }

}  // namespace headrace::python
