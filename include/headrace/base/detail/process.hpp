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

/// What a forked child may do with objects that its parent made. A child has one thread: the worker threads that its
/// parent's streams, engines and receivers rely on do not exist there, so a wait for one of them would never return.
/// docs/device.md explains what that means for a program.
namespace headrace {

/// Errc::stopped with this native code: the object was made before fork(), in the parent.
inline constexpr int kInheritedNative = EOWNERDEAD;
inline constexpr Error kInherited{Errc::stopped, kInheritedNative};

namespace detail {
/// 0 in the process that loaded Headrace; each generation of children adds 1.
extern std::atomic<std::uint32_t> process_generation;
}  // namespace detail

/// Remembers the process that made an object. A check costs one load.
class Birth {
 public:
  /// True in a forked child if its parent, or an earlier process, made the object.
  [[nodiscard]] bool inherited() const noexcept {
    return generation_ != detail::process_generation.load(std::memory_order_relaxed);
  }
  /// kInherited if inherited(), else ok.
  [[nodiscard]] Status check() const noexcept { return inherited() ? Status(kInherited) : Status(); }
  /// Throws Exception (Errc::stopped) with "<doing>: ..." if inherited().
  void require(std::string_view doing) const {
    if (inherited()) throw_error(doing, kInherited);
  }

 private:
  std::uint32_t generation_ = detail::process_generation.load(std::memory_order_relaxed);
};

/// Deletes objects that this process made and keeps inherited ones: their destructors would join threads that do not
/// exist here, or destroy condition variables on which those threads still count as waiting.
struct DeleteOwn {
  Birth birth;
  template <class T>
  void operator()(T* object) const noexcept {
    if (!birth.inherited()) delete object;
  }
};

/// A T that only the process that made it destroys.
template <class T>
using ProcessOwned = std::unique_ptr<T, DeleteOwn>;

template <class T, class... Arguments>
[[nodiscard]] ProcessOwned<T> make_process_owned(Arguments&&... arguments) {
  return ProcessOwned<T>(new T(std::forward<Arguments>(arguments)...));
}

/// Call it first in the destructor of a class that holds its state behind a pointer. It leaves the state of an
/// inherited object as it is. State::birth is a Birth.
template <class State>
void let_go_if_inherited(std::unique_ptr<State>& state) noexcept {
  if (state != nullptr && state->birth.inherited()) static_cast<void>(state.release());
}

/// Calls `renew(object)` in every child that is forked from now on, before fork() returns there. `renew` may only do
/// what a signal handler may do. Throws std::bad_alloc. `object` is never destroyed.
void renew_in_children(void (*renew)(void* object) noexcept, void* object);

/// Constructs `object` again without destroying it, because another thread of the parent may have been changing it.
template <class T>
void renew(T& object) noexcept {
  static_assert(std::is_nothrow_default_constructible_v<T>);
  new (&object) T();
}

/// A new T that is never destroyed, and that every forked child constructs again.
template <class T>
[[nodiscard]] T& make_process_wide() {
  T* const made = new T();
  renew_in_children([](void* object) noexcept { renew(*static_cast<T*>(object)); }, made);
  return *made;
}

}  // namespace headrace
