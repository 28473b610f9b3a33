#pragma once

#include <nanobind/nanobind.h>

#include <chrono>
#include <exception>
#include <functional>
#include <future>
#include <stop_token>
#include <utility>

#include "gil.hpp"
#include "headrace/base/detail/threads.hpp"

namespace headrace::python {

/// Called without the GIL after a signal has interrupted a system call. Throws what the signal's Python handler raised.
inline void raise_signals() {
  const GilAcquire acquired;
  if (PyErr_CheckSignals() != 0) throw nanobind::python_error();
}

/// Runs long work in another thread. The calling thread meanwhile keeps Python responsive: it releases the GIL and
/// checks for signals. Ctrl-C asks the work to stop, and run() then returns its result so far.
class Interruptible {
 public:
  [[nodiscard]] std::stop_token token() const noexcept { return source_.get_token(); }

  /// Wraps a Python callback for a C++ thread. An exception in it stops the work, and run() raises it.
  template <class... Args>
  [[nodiscard]] std::function<void(Args...)> guard(const std::function<void(Args...)>& callback) {
    if (!callback) return {};
    return [this, &callback](Args... arguments) {
      if (failure_) return;
      try {
        const GilAcquire acquired;
        callback(std::move(arguments)...);
      } catch (...) {
        failure_ = std::current_exception();
        source_.request_stop();
      }
    };
  }

  /// Returns what `work` returns, and throws what it throws. Called with the GIL; `work` runs without it.
  template <class Work>
  auto run(Work work) {
    std::future<decltype(work())> result;
    start_each("worker threads of a call", 1,
               [&](std::size_t) { result = std::async(std::launch::async, std::move(work)); });
    std::exception_ptr raised;
    while (!ready(result)) {
      if (PyErr_CheckSignals() == 0) continue;
      nanobind::python_error error;
      source_.request_stop();
      if (!error.matches(PyExc_KeyboardInterrupt)) raised = std::make_exception_ptr(std::move(error));
    }
    auto value = result.get();
    if (raised) std::rethrow_exception(raised);
    if (failure_) std::rethrow_exception(failure_);
    return value;
  }

 private:
  static constexpr auto kLook = std::chrono::milliseconds(50);

  template <class Future>
  [[nodiscard]] static bool ready(Future& result) {
    const GilRelease released;
    return result.wait_for(kLook) == std::future_status::ready;
  }

  std::stop_source source_;
  std::exception_ptr failure_;  ///< Written by the work's thread, read after that has ended.
};

}  // namespace headrace::python
