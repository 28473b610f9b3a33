#pragma once

#include <nanobind/nanobind.h>

#if defined(Py_LIMITED_API)
// Every CPython exports it, but the headers of the stable ABI leave it out, and offer no other way to ask.
extern "C" int PyGILState_Check(void);
#endif

/// The GIL, given up and taken, by threads that the interpreter's end may overtake. From then on CPython ends every
/// other thread that asks for the GIL, by pthread_exit(), which unwinds the thread's stack: through C++ functions that
/// promise not to throw, where that ends the process. So a thread of Python that comes back from C++ too late sleeps
/// until the process is gone instead of asking, and a thread of C++ that wants to call Python gets an exception.
namespace headrace::python {

/// Gives up the GIL for its scope. Instead of nanobind::gil_scoped_release.
class GilRelease {
 public:
  GilRelease() noexcept : state_(PyEval_SaveThread()) {}
  GilRelease(const GilRelease&) = delete;
  GilRelease& operator=(const GilRelease&) = delete;
  ~GilRelease();

 private:
  PyThreadState* state_;
};

/// Takes the GIL for its scope, in any thread. Instead of nanobind::gil_scoped_acquire.
class GilAcquire {
 public:
  /// Throws Exception (Errc::stopped) once the interpreter has begun to end, unless this is the thread that ends it.
  GilAcquire();
  GilAcquire(const GilAcquire&) = delete;
  GilAcquire& operator=(const GilAcquire&) = delete;
  ~GilAcquire() { PyGILState_Release(state_); }

 private:
  PyGILState_STATE state_;
};

/// Whether the interpreter has begun to end, in another thread.
[[nodiscard]] bool python_ends_elsewhere() noexcept;

}  // namespace headrace::python
