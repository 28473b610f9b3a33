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

/// The event loop of asyncio that one object works in: futures of it, and a call back whenever an eventfd is written or
/// a time has come.
class EventLoop {
 public:
  /// The loop that runs in this thread; None where none does.
  [[nodiscard]] nanobind::object running() const;

  /// From now on `woken(false)` is called in `loop` after signals of descriptor(), which is new, and as long as `also`,
  /// which may be -1, is readable. Throws SystemError where the process has no descriptor left.
  void bind(nanobind::object loop, int also, const std::function<void(bool)>& woken);
  /// Lets go of the loop, in any thread. Does not throw.
  void unbind() noexcept;
  /// As unbind(), in a forked child, whose loop shares what it watches with the parent's.
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

  /// `woken(true)` is called once, after what the loop has to do now.
  void wake_soon() const;
  /// `woken(false)` is called at `time` as well, or earlier where that was asked for before.
  void wake_at(Time time);

  /// For the garbage collector.
  int traverse(visitproc visit, void* arg) const;

 private:
  nanobind::object get_running_ = nanobind::module_::import_("asyncio").attr("_get_running_loop");
  nanobind::object done_ = nanobind::steal(PyUnicode_InternFromString("done"));
  nanobind::object set_result_ = nanobind::steal(PyUnicode_InternFromString("set_result"));
  nanobind::object set_exception_ = nanobind::steal(PyUnicode_InternFromString("set_exception"));
  nanobind::object loop_;  ///< This and the next five are not valid until bind().
  nanobind::object create_future_;
  nanobind::object call_soon_;
  nanobind::object woken_;
  nanobind::object woken_soon_;
  nanobind::object timer_;
  Time timer_at_ = Time::max();
  std::shared_ptr<const EventDescriptor> descriptor_;  ///< Kept open by what the loop calls, too.
  std::shared_ptr<const FileDescriptor> also_;         ///< Likewise: a copy of the one that bind() was given, or null.
  std::thread::id thread_;
};

}  // namespace headrace::python
