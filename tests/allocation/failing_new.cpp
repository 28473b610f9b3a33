#include "failing_new.hpp"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>
#include <string_view>

#include "headrace/base/error.hpp"

namespace headrace::testing {

namespace {

constexpr std::int64_t kOff = -1;
/// After this many allocations of a scenario, only some of them fail: those of loops are alike.
constexpr std::int64_t kEach = 400;
constexpr std::int64_t kRunsBeyond = 150;
constexpr unsigned kSecondsMost = 60;

std::atomic<std::int64_t> left{kOff};  ///< Number of calls that still succeed.
std::atomic<bool> stays{false};
std::atomic<bool> has_happened{false};
std::atomic<std::int64_t> live{0};
std::atomic<std::int64_t> calls{0};

const char* scenario_now = "";
std::int64_t after_now = 0;
bool lasting_now = false;

thread_local int spared = 0;

/// Kernels of a CPU device allocate their block's memory in the thread that runs them, where a failure cannot be
/// reported: it ends the process, like a stack overflow.
bool runs_kernels() noexcept {
  char name[16] = "";
  if (pthread_getname_np(pthread_self(), name, sizeof(name)) != 0) return false;
  const std::string_view now = name;
  return now == "headrace-block" || now == "headrace-worker";
}

bool must_fail() noexcept {
  if (spared > 0 || runs_kernels()) return false;
  calls.fetch_add(1, std::memory_order_relaxed);
  std::int64_t now = left.load(std::memory_order_relaxed);
  while (now >= 0) {
    const std::int64_t next = now > 0 ? now - 1 : (stays.load(std::memory_order_relaxed) ? 0 : kOff);
    if (!left.compare_exchange_weak(now, next)) continue;
    if (now == 0) has_happened.store(true);
    return now == 0;
  }
  return false;
}

void* take_block(std::size_t bytes, std::size_t alignment) noexcept {
  if (must_fail()) return nullptr;
  const std::size_t some = bytes == 0 ? 1 : bytes;
  void* const data = alignment == 0 ? std::malloc(some)  // NOLINT(cppcoreguidelines-no-malloc)
                                    : std::aligned_alloc(alignment, (some + alignment - 1) / alignment * alignment);
  if (data != nullptr) live.fetch_add(1, std::memory_order_relaxed);
  return data;
}

void give_block(void* data) noexcept {
  if (data == nullptr) return;
  live.fetch_sub(1, std::memory_order_relaxed);
  std::free(data);  // NOLINT(cppcoreguidelines-no-malloc)
}

void say_where(const char* what) noexcept {
  left.store(kOff);
  char text[300];
  const int length = std::snprintf(text, sizeof(text), "%s: %s with allocation %lld failing%s\n", what, scenario_now,
                                   static_cast<long long>(after_now), lasting_now ? ", and all after it" : "");
  [[maybe_unused]] const ssize_t written =
      ::write(STDERR_FILENO, text, length > 0 ? static_cast<std::size_t>(length) : 0);
}

extern "C" void at_signal(int number) {
  say_where(number == SIGALRM ? "no end" : "died");
  std::signal(number, SIG_DFL);
  std::raise(number);
}

void watch() noexcept {
  static std::once_flag once;
  std::call_once(once, [] {
    for (const int number : {SIGABRT, SIGSEGV, SIGBUS, SIGALRM}) std::signal(number, &at_signal);
  });
}

/// Runs the scenario once; returns the number of leaked blocks.
std::int64_t left_behind(const std::string& name, const std::function<void()>& scenario, std::int64_t after,
                         bool lasting) {
  const std::int64_t before = live_blocks();
  now_at(name.c_str(), after, lasting);
  bool failed = false;
  bool threw = false;
  std::string odd;
  std::array<char, 300> what{};  // not a string, which would count as a leak
  {
    const FailingNew failing(after, lasting);
    try {
      scenario();
    } catch (const std::bad_alloc&) {
      threw = true;
    } catch (const Exception& error) {
      threw = true;
      std::strncpy(what.data(), error.what(), what.size() - 1);
    } catch (...) {
      threw = true;
      odd = "an exception of another kind";
    }
    failed = failing.happened();
  }
  EXPECT_EQ(odd, "") << name << ", allocation " << after;
  EXPECT_TRUE(failed || !threw) << name << ": it threw although nothing had failed: " << what.data();
  // Worker threads of a CPU device stay for a moment after their last user.
  for (int look = 0; look < 50 && live_blocks() > before; ++look) ::usleep(10'000);
  return live_blocks() - before;
}

}  // namespace

FailingNew::FailingNew(std::int64_t after, bool lasting) noexcept {
  has_happened.store(false);
  stays.store(lasting);
  left.store(after);
}
FailingNew::~FailingNew() { left.store(kOff); }
bool FailingNew::happened() const noexcept { return has_happened.load(); }

Spared::Spared() noexcept { ++spared; }
Spared::~Spared() { --spared; }

std::int64_t live_blocks() noexcept { return live.load(); }
std::int64_t calls_of_new() noexcept { return calls.load(); }

void now_at(const char* scenario, std::int64_t after, bool lasting) noexcept {
  watch();
  scenario_now = scenario;
  after_now = after;
  lasting_now = lasting;
  ::alarm(kSecondsMost);
}

void fail_each_allocation(const std::string& name, const std::function<void()>& scenario) {
  now_at(name.c_str(), kOff, false);
  scenario();  // one-time allocations are made here
  const std::int64_t before = calls_of_new();
  scenario();
  const std::int64_t total = calls_of_new() - before;
  ASSERT_GT(total, 0);
  const std::int64_t stride = std::max<std::int64_t>((total - kEach) / kRunsBeyond, 1);
  for (std::int64_t after = 0; after < total; after += after < kEach ? 1 : stride) {
    // A leak that occurs twice is not a cache that grew once.
    if (left_behind(name, scenario, after, false) > 0) {
      EXPECT_LE(left_behind(name, scenario, after, false), 0) << name << ": a leak, with allocation " << after;
    }
    if (after % 3 == 0) left_behind(name, scenario, after, true);
    if (::testing::Test::HasFailure()) break;
  }
  ::alarm(0);
  scenario();  // it must still work
}

}  // namespace headrace::testing

namespace {

using headrace::testing::give_block;
using headrace::testing::take_block;

void* or_throw(void* data) {
  if (data == nullptr) throw std::bad_alloc();
  return data;
}
std::size_t of(std::align_val_t alignment) noexcept { return static_cast<std::size_t>(alignment); }

}  // namespace

void* operator new(std::size_t bytes) { return or_throw(take_block(bytes, 0)); }
void* operator new[](std::size_t bytes) { return or_throw(take_block(bytes, 0)); }
void* operator new(std::size_t bytes, std::align_val_t alignment) { return or_throw(take_block(bytes, of(alignment))); }
void* operator new[](std::size_t bytes, std::align_val_t alignment) {
  return or_throw(take_block(bytes, of(alignment)));
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept { return take_block(bytes, 0); }
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept { return take_block(bytes, 0); }
void* operator new(std::size_t bytes, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return take_block(bytes, of(alignment));
}
void* operator new[](std::size_t bytes, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return take_block(bytes, of(alignment));
}
void operator delete(void* data) noexcept { give_block(data); }
void operator delete[](void* data) noexcept { give_block(data); }
void operator delete(void* data, std::size_t) noexcept { give_block(data); }
void operator delete[](void* data, std::size_t) noexcept { give_block(data); }
void operator delete(void* data, std::align_val_t) noexcept { give_block(data); }
void operator delete[](void* data, std::align_val_t) noexcept { give_block(data); }
void operator delete(void* data, std::size_t, std::align_val_t) noexcept { give_block(data); }
void operator delete[](void* data, std::size_t, std::align_val_t) noexcept { give_block(data); }
void operator delete(void* data, const std::nothrow_t&) noexcept { give_block(data); }
void operator delete[](void* data, const std::nothrow_t&) noexcept { give_block(data); }
void operator delete(void* data, std::align_val_t, const std::nothrow_t&) noexcept { give_block(data); }
void operator delete[](void* data, std::align_val_t, const std::nothrow_t&) noexcept { give_block(data); }
