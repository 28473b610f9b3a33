#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <exception>
#include <functional>
#include <string>

/// This program's operator new fails on request, in any thread except those that run kernels: memory runs out once at
/// every point.
namespace headrace::testing {

/// While it exists, the call of operator new after `after` others fails; with `lasting`, so do all later ones.
class FailingNew {
 public:
  FailingNew(std::int64_t after, bool lasting) noexcept;
  FailingNew(const FailingNew&) = delete;
  FailingNew& operator=(const FailingNew&) = delete;
  ~FailingNew();

  [[nodiscard]] bool happened() const noexcept;
};

/// While it exists, this thread's allocations do not fail. The test uses it for its own work within a scenario.
class Spared {
 public:
  Spared() noexcept;
  Spared(const Spared&) = delete;
  Spared& operator=(const Spared&) = delete;
  ~Spared();
};

/// Blocks that operator new has returned and that have not been freed.
[[nodiscard]] std::int64_t live_blocks() noexcept;
/// Number of calls of operator new so far.
[[nodiscard]] std::int64_t calls_of_new() noexcept;

/// If the program dies meanwhile (a call of std::terminate, a signal, no end within a minute), it says where it was.
void now_at(const char* scenario, std::int64_t after, bool lasting) noexcept;

/// Runs `scenario` with each of its allocations failing in turn. It must throw std::bad_alloc or a Headrace exception,
/// or succeed as if nothing had failed, which it checks itself; and it must free everything it allocated.
void fail_each_allocation(const std::string& name, const std::function<void()>& scenario);

}  // namespace headrace::testing
