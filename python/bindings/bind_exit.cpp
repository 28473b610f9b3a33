#include <atomic>
#include <chrono>
#include <thread>

#include "bindings.hpp"
#include "gil.hpp"
#include "headrace/base/detail/process.hpp"
#include "headrace/base/error.hpp"

namespace nb = nanobind;

namespace headrace::python {

namespace {

/// Between threads that ask for the GIL and the one that ends the interpreter. A forked child has a new one: threads of
/// the parent that were asking are not there.
struct Exit {
  std::atomic<int> asking{0};      ///< Threads that ask for the GIL; each has looked at `began` after it was counted.
  std::atomic<bool> began{false};  ///< Nobody but `ending` may ask any more.
  std::atomic<std::thread::id> ending{};
};

Exit& process_exit() {
  static Exit& one = make_process_wide<Exit>();
  return one;
}

/// Calls `ask`, which takes the GIL; false, and nothing done, where another thread ends the interpreter.
template <class Ask>
bool take_gil(Ask ask) noexcept {
  Exit& end = process_exit();
  end.asking.fetch_add(1, std::memory_order_seq_cst);  // pairs with begin_exit()
  const bool may_ask = !python_ends_elsewhere();
  if (may_ask) ask();
  end.asking.fetch_sub(1, std::memory_order_seq_cst);
  return may_ask;
}

/// Called with the GIL, before the interpreter ends. Threads that ask already are let through first.
void begin_exit() {
  Exit& end = process_exit();
  end.ending.store(std::this_thread::get_id());
  end.began.store(true, std::memory_order_seq_cst);
  PyThreadState* const state = PyEval_SaveThread();
  while (end.asking.load(std::memory_order_seq_cst) != 0) std::this_thread::sleep_for(std::chrono::microseconds(50));
  PyEval_RestoreThread(state);
  // What daemon threads hold is never given back, and no leak to be told of.
  if (nb::cast<int>(nb::module_::import_("threading").attr("active_count")()) > 1) nb::set_leak_warnings(false);
}

}  // namespace

bool python_ends_elsewhere() noexcept {
  const Exit& end = process_exit();
  return end.began.load(std::memory_order_seq_cst) && end.ending.load() != std::this_thread::get_id();
}

GilRelease::~GilRelease() {
  if (take_gil([this] { PyEval_RestoreThread(state_); })) return;
  while (true) std::this_thread::sleep_for(std::chrono::hours(1));
}

GilAcquire::GilAcquire() {
  if (take_gil([this] { state_ = PyGILState_Ensure(); })) return;
  throw Exception(Errc::stopped, "Python is shutting down: its functions can no longer be called");
}

void bind_exit(nb::module_& /*module*/) {
  static_cast<void>(process_exit());  // not for the first time in a destructor
  nb::module_::import_("atexit").attr("register")(nb::cpp_function(&begin_exit));
}

}  // namespace headrace::python
