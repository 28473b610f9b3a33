#include "kept.hpp"

#include "gil.hpp"
#include "headrace/base/error.hpp"

namespace nb = nanobind;

namespace headrace::python {

std::shared_ptr<const void> keep(nb::object object) {
  return {object.release().ptr(), [](const void* held) {
            try {
              const GilAcquire acquired;
              nb::handle(static_cast<PyObject*>(const_cast<void*>(held))).dec_ref();
            } catch (const Exception&) {  // NOLINT(bugprone-empty-catch): it stays
            }
          }};
}

}  // namespace headrace::python
