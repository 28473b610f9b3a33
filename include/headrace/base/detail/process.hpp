#pragma once

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <new>
#include <string_view>
#include <type_traits>

#include "headrace/base/error.hpp"
#include "headrace/base/result.hpp"

/// What a forked child may do with what its parent made. A child has one thread: the worker threads that its parent's
/// streams, engines and receivers rely on do not exist there, and nothing that waits for one of them would return.
/// docs/device.md tells what that means for a program.
namespace headrace {

/// Errc::stopped with this native code: the object was made before fork(), in the parent.
inline constexpr int kInheritedNative = EOWNERDEAD;
inline constexpr Error kInherited{Errc::stopped, kInheritedNative};

namespace detail {
/// 0 in the process that loaded Headrace, and one more in each generation of children.
extern std::atomic<std::uint32_t> process_generation;
}  // namespace detail

/// Remembers the process that made an object. It costs one load to ask.
class Birth {
 public:
  /// True in a forked child where the object was made by its parent, or by a process before that.
  [[nodiscard]] bool inherited() const noexcept {
    return generation_ != detail::process_generation.load(std::memory_order_relaxed);
  }
  /// kInherited where inherited(), else ok.
  [[nodiscard]] Status check() const noexcept { return inherited() ? Status(kInherited) : Status(); }
  /// Throws Exception (Errc::stopped) that says "<doing>: ..." where inherited().
  void require(std::string_view doing) const {
    if (inherited()) throw_error(doing, kInherited);
  }

 private:
  std::uint32_t generation_ = detail::process_generation.load(std::memory_order_relaxed);
};

/// Deletes what this process made, and leaves alone what it inherited: its destructor would join threads that are not
/// there, or destroy condition variables on which they still count as waiting.
struct DeleteOwn {
  Birth birth;
  template <class T>
  void operator()(T* object) const noexcept {
    if (!birth.inherited()) delete object;
  }
};

/// A T that goes with the process that made it.
template <class T>
using ProcessOwned = std::unique_ptr<T, DeleteOwn>;

template <class T, class... Arguments>
[[nodiscard]] ProcessOwned<T> make_process_owned(Arguments&&... arguments) {
  return ProcessOwned<T>(new T(std::forward<Arguments>(arguments)...));
}

/// To be called first in the destructor of a class that holds its state behind a pointer: the state of an inherited
/// object stays as it is. State::birth is a Birth.
template <class State>
void let_go_if_inherited(std::unique_ptr<State>& state) noexcept {
  if (state != nullptr && state->birth.inherited()) static_cast<void>(state.release());
}

/// Calls `renew(object)` in every child that is forked from now on, before fork() returns there. It may do no more than
/// a signal handler may. Throws std::bad_alloc. `object` is never destroyed.
void renew_in_children(void (*renew)(void* object) noexcept, void* object);

/// Makes `object` anew, without destroying it: another thread of the parent may have been changing it.
template <class T>
void renew(T& object) noexcept {
  static_assert(std::is_nothrow_default_constructible_v<T>);
  new (&object) T();
}

/// A new T that is never destroyed, and that every forked child makes anew.
template <class T>
[[nodiscard]] T& make_process_wide() {
  T* const made = new T();
  renew_in_children([](void* object) noexcept { renew(*static_cast<T*>(object)); }, made);
  return *made;
}

}  // namespace headrace
