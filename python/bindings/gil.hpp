#pragma once

#include <nanobind/nanobind.h>

#if defined(Py_LIMITED_API)
// Every CPython exports it, but the headers of the stable ABI omit it and offer no alternative.
extern "C" int PyGILState_Check(void);
#endif

/// Releases and takes the GIL in threads that may outlive the interpreter. Once the interpreter has begun to end,
/// CPython ends every other thread that requests the GIL with pthread_exit(), which unwinds the thread's stack. In a
/// C++ function that promises not to throw, that ends the process. So a Python thread that returns from C++ too late
/// sleeps until the process is gone instead of requesting the GIL, and a C++ thread that wants to call Python gets an
/// exception.
namespace headrace::python {

/// Releases the GIL for its scope. Use it instead of nanobind::gil_scoped_release.
class GilRelease {
 public:
  GilRelease() noexcept : state_(PyEval_SaveThread()) {}
  GilRelease(const GilRelease&) = delete;
  GilRelease& operator=(const GilRelease&) = delete;
  ~GilRelease();

 private:
  PyThreadState* state_;
};

/// Takes the GIL for its scope, in any thread. Use it instead of nanobind::gil_scoped_acquire.
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

/// Whether another thread has begun to end the interpreter.
[[nodiscard]] bool python_ends_elsewhere() noexcept;

}  // namespace headrace::python
