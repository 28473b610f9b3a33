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

/// Coordinates threads that request the GIL with the thread that ends the interpreter. A forked child gets a new state,
/// because the parent's requesting threads do not exist in it.
struct Exit {
  std::atomic<int> asking{0};      ///< Threads that are requesting the GIL. Each checks `began` after it is counted.
  std::atomic<bool> began{false};  ///< Whether only `ending` may still request the GIL.
  std::atomic<std::thread::id> ending{};
};

Exit& process_exit() {
  static Exit& one = make_process_wide<Exit>();
  return one;
}

/// Calls `ask`, which takes the GIL. If another thread ends the interpreter, returns false instead.
template <class Ask>
bool take_gil(Ask ask) noexcept {
  Exit& end = process_exit();
  end.asking.fetch_add(1, std::memory_order_seq_cst);  // pairs with begin_exit()
  const bool may_ask = !python_ends_elsewhere();
  if (may_ask) ask();
  end.asking.fetch_sub(1, std::memory_order_seq_cst);
  return may_ask;
}

/// Called with the GIL, before the interpreter ends. Lets threads through that are already requesting the GIL.
void begin_exit() {
  Exit& end = process_exit();
  end.ending.store(std::this_thread::get_id());
  end.began.store(true, std::memory_order_seq_cst);
  PyThreadState* const state = PyEval_SaveThread();
  while (end.asking.load(std::memory_order_seq_cst) != 0) std::this_thread::sleep_for(std::chrono::microseconds(50));
  PyEval_RestoreThread(state);
  // Daemon threads never release their objects, so nanobind must not report these as leaks.
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
  static_cast<void>(process_exit());  // must not first be made in a destructor
  nb::module_::import_("atexit").attr("register")(nb::cpp_function(&begin_exit));
}

}  // namespace headrace::python
