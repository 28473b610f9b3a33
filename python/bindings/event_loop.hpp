#pragma once

#include <nanobind/nanobind.h>

#include <functional>
#include <memory>
#include <thread>

#include "headrace/base/detail/clock.hpp"

namespace headrace {
class EventDescriptor;
class FileDescriptor;
}  // namespace headrace

namespace headrace::python {

/// The asyncio event loop of an object. It makes futures, and calls back whenever an eventfd is written or a time has
/// come.
class EventLoop {
 public:
  /// The loop that runs in this thread, or None.
  [[nodiscard]] nanobind::object running() const;

  /// Makes `loop` call `woken(false)` after signals of descriptor(), which is new, and while `also`, unless it is -1,
  /// is readable. Throws SystemError if the process has no descriptor left.
  void bind(nanobind::object loop, int also, const std::function<void(bool)>& woken);
  /// Detaches from the loop. Callable from any thread; does not throw.
  void unbind() noexcept;
  /// The same in a forked child, whose loop shares its watched descriptors with the parent.
  void abandon() noexcept;

  [[nodiscard]] bool bound() const noexcept { return loop_.is_valid(); }
  [[nodiscard]] bool is(nanobind::handle loop) const noexcept { return loop_.is(loop); }
  [[nodiscard]] bool closed() const;
  [[nodiscard]] int descriptor() const noexcept;
  /// Whether the descriptor was signalled since the last call.
  [[nodiscard]] bool take_signal() const noexcept;

  [[nodiscard]] nanobind::object create_future() const;
  [[nodiscard]] bool is_done(nanobind::handle future) const;
  void set_result(nanobind::handle future, nanobind::handle result) const;
  void set_exception(nanobind::handle future, nanobind::handle error) const;

  /// Schedules one call of `woken(true)` after the loop's current work.
  void wake_soon() const;
  /// Schedules a call of `woken(false)` at `time`, or earlier if that was requested before.
  void wake_at(Time time);

  /// For the garbage collector.
  int traverse(visitproc visit, void* arg) const;

 private:
  nanobind::object get_running_ = nanobind::module_::import_("asyncio").attr("_get_running_loop");
  nanobind::object done_ = nanobind::steal(PyUnicode_InternFromString("done"));
  nanobind::object set_result_ = nanobind::steal(PyUnicode_InternFromString("set_result"));
  nanobind::object set_exception_ = nanobind::steal(PyUnicode_InternFromString("set_exception"));
  nanobind::object loop_;  ///< This and the next five members are invalid until bind().
  nanobind::object create_future_;
  nanobind::object call_soon_;
  nanobind::object woken_;
  nanobind::object woken_soon_;
  nanobind::object timer_;
  Time timer_at_ = Time::max();
  std::shared_ptr<const EventDescriptor> descriptor_;  ///< Also kept open by the loop's callback.
  std::shared_ptr<const FileDescriptor> also_;         ///< Likewise: a duplicate of the one given to bind(), or null.
  std::thread::id thread_;
};

}  // namespace headrace::python
