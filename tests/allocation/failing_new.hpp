#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <exception>
#include <functional>
#include <string>

/// This program's operator new fails where a test says so, in whatever thread but those that run kernels: memory runs
/// out at every point once.
namespace headrace::testing {

/// From construction to destruction, the call of operator new that comes after `after` others fails; with `lasting`,
/// and all that follow it.
class FailingNew {
 public:
  FailingNew(std::int64_t after, bool lasting) noexcept;
  FailingNew(const FailingNew&) = delete;
  FailingNew& operator=(const FailingNew&) = delete;
  ~FailingNew();

  [[nodiscard]] bool happened() const noexcept;
};

/// While it lives, this thread's allocations do not fail: for what a test itself does in the middle of a scenario.
class Spared {
 public:
  Spared() noexcept;
  Spared(const Spared&) = delete;
  Spared& operator=(const Spared&) = delete;
  ~Spared();
};

/// Blocks that operator new has given out and that have not come back.
[[nodiscard]] std::int64_t live_blocks() noexcept;
/// Calls of operator new so far.
[[nodiscard]] std::int64_t calls_of_new() noexcept;

/// What ends the program meanwhile (a call of std::terminate, a signal, no end within a minute) says where it was.
void now_at(const char* scenario, std::int64_t after, bool lasting) noexcept;

/// Runs `scenario` with each of its allocations failing in turn. It has to throw std::bad_alloc or a Headrace
/// exception, or to end as if nothing had failed, which it checks itself; and to give back all that it has taken.
void fail_each_allocation(const std::string& name, const std::function<void()>& scenario);

}  // namespace headrace::testing
