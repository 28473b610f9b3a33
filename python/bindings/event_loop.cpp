#include "event_loop.hpp"

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/event_descriptor.hpp"
#include "base/file_descriptor.hpp"
#include "convert.hpp"
#include "headrace/base/error.hpp"

namespace nb = nanobind;

namespace headrace::python {

namespace {

nb::object checked(PyObject* result) {
  if (result == nullptr) throw nb::python_error();
  return nb::steal(result);
}

/// A duplicate of a descriptor; null for -1.
std::shared_ptr<const FileDescriptor> copy_of(int descriptor) {
  if (descriptor < 0) return nullptr;
  auto copy = std::make_shared<const FileDescriptor>(::fcntl(descriptor, F_DUPFD_CLOEXEC, 0));
  if (!copy->valid()) throw_errno("watching a server in an event loop");
  return copy;
}

nb::object call_method(nb::handle self, nb::handle name) {
  const std::array<PyObject*, 1> arguments{self.ptr()};
  return checked(PyObject_VectorcallMethod(name.ptr(), arguments.data(), arguments.size(), nullptr));
}

nb::object call_method(nb::handle self, nb::handle name, nb::handle argument) {
  const std::array<PyObject*, 2> arguments{self.ptr(), argument.ptr()};
  return checked(PyObject_VectorcallMethod(name.ptr(), arguments.data(), arguments.size(), nullptr));
}

}  // namespace

nb::object EventLoop::running() const { return checked(PyObject_CallNoArgs(get_running_.ptr())); }

void EventLoop::bind(nb::object loop, int also, const std::function<void(bool)>& woken) {
  unbind();
  auto descriptor = std::make_shared<const EventDescriptor>();
  const auto other = copy_of(also);
  // The loop's callback keeps the descriptor open, so that its number is not reused while the loop watches it.
  nb::object call = nb::cpp_function([woken, descriptor, other] { woken(false); });
  loop.attr("add_reader")(descriptor->get(), call);
  if (other) loop.attr("add_reader")(other->get(), call);
  create_future_ = loop.attr("create_future");
  call_soon_ = loop.attr("call_soon");
  woken_ = std::move(call);
  woken_soon_ = nb::cpp_function([woken] { woken(true); });
  loop_ = std::move(loop);
  descriptor_ = std::move(descriptor);
  also_ = other;
  thread_ = std::this_thread::get_id();
}

void EventLoop::unbind() noexcept {
  if (!bound()) return;
  try {
    if (timer_.is_valid()) timer_.attr("cancel")();
    if (!closed()) {
      const nb::object remove = loop_.attr("remove_reader");
      for (const int number : {descriptor(), also_ ? also_->get() : -1}) {
        if (number < 0) continue;
        if (std::this_thread::get_id() == thread_) {
          remove(number);
        } else {
          loop_.attr("call_soon_threadsafe")(remove, number);
        }
      }
    }
  } catch (nb::python_error& error) {  // the loop has been closed
    error.discard_as_unraisable("unbinding an event loop");
  }
  abandon();
}

void EventLoop::abandon() noexcept {
  timer_at_ = Time::max();
  // Each may run user code, which must find this object unbound.
  nb::object loop = std::move(loop_);
  nb::object timer = std::move(timer_);
  nb::object create_future = std::move(create_future_);
  nb::object call_soon = std::move(call_soon_);
  nb::object woken = std::move(woken_);
  nb::object woken_soon = std::move(woken_soon_);
  descriptor_.reset();
  also_.reset();
}

bool EventLoop::closed() const { return nb::cast<bool>(loop_.attr("is_closed")()); }

int EventLoop::descriptor() const noexcept { return descriptor_->get(); }

bool EventLoop::take_signal() const noexcept { return descriptor_ && descriptor_->clear(); }

nb::object EventLoop::create_future() const { return checked(PyObject_CallNoArgs(create_future_.ptr())); }

bool EventLoop::is_done(nb::handle future) const { return call_method(future, done_).ptr() == Py_True; }

void EventLoop::set_result(nb::handle future, nb::handle result) const { call_method(future, set_result_, result); }

void EventLoop::set_exception(nb::handle future, nb::handle error) const { call_method(future, set_exception_, error); }

void EventLoop::wake_soon() const {
  PyObject* const argument = woken_soon_.ptr();
  checked(PyObject_Vectorcall(call_soon_.ptr(), &argument, 1, nullptr));
}

void EventLoop::wake_at(Time time) {
  const Time now = SteadyClock::now();
  if (timer_at_ <= now) timer_at_ = Time::max();  // the timer has fired, or is about to
  if (time >= timer_at_) return;
  if (timer_.is_valid()) timer_.attr("cancel")();
  // Not a tick too early: poll() drops late queries, and does not request a second call.
  const Duration left = std::max(time - now, Duration::zero()) + std::chrono::microseconds(1);
  timer_ = loop_.attr("call_later")(to_seconds(left), woken_);
  timer_at_ = time;
}

int EventLoop::traverse(visitproc visit, void* arg) const {
  Py_VISIT(loop_.ptr());
  Py_VISIT(create_future_.ptr());
  Py_VISIT(call_soon_.ptr());
  Py_VISIT(woken_.ptr());
  Py_VISIT(woken_soon_.ptr());
  Py_VISIT(timer_.ptr());
  return 0;
}

}  // namespace headrace::python
