#include <nanobind/stl/string.h>

#include <cerrno>
#include <exception>
#include <string>
#include <system_error>

#include "bindings.hpp"
#include "headrace/base/error.hpp"
#include "headrace/base/threads.hpp"

namespace nb = nanobind;

namespace headrace::python {

namespace {

/// Sets the Python error to headrace.errors.<type>(what, code, native). The classes are Python's own, so that they are
/// typed and documented there; they are looked up each time because set-up fails rarely.
void set_error(const char* type, const Exception& exception) {
  try {
    const nb::object error_class = nb::module_::import_("headrace.errors").attr(type);
    const nb::object error =
        error_class(exception.what(), std::string(to_string(exception.code())), exception.native());
    PyErr_SetObject(error_class.ptr(), error.ptr());
  } catch (nb::python_error& error) {
    error.restore();
  }
}

void translate(const std::exception_ptr& thrown, void* /*payload*/) {
  try {
    std::rethrow_exception(thrown);
  } catch (const UsageError& exception) {
    set_error("UsageError", exception);
  } catch (const DataError& exception) {
    set_error("DataError", exception);
  } catch (const DeviceError& exception) {
    set_error("DeviceError", exception);
  } catch (const SystemError& exception) {
    set_error(exception.native() == ENOENT ? "MissingFileError" : "SystemError", exception);
  } catch (const Exception& exception) {
    set_error("Error", exception);
  } catch (const std::system_error& exception) {  // of the standard library, which starts threads
    const int number = exception.code().value();
    const std::string text = number == EAGAIN ? "no thread could start: " + thread_limits() : exception.what();
    set_error("SystemError", Exception(Errc::system, text, number));
  }
}

}  // namespace

void bind_errors(nb::module_& /*module*/) { nb::register_exception_translator(&translate); }

}  // namespace headrace::python
