#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <latch>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "headrace/device/buffer.hpp"
#include "headrace/device/device.hpp"
#include "headrace/device/stream.hpp"

/// Shared by the contract tests: one test body runs on every device present.
namespace headrace::testing {

/// A test of what every device promises; device() is the device under test.
class DeviceTest : public ::testing::TestWithParam<std::string> {
 public:
  [[nodiscard]] static Device device() { return Device::parse(GetParam()); }
  [[nodiscard]] static bool on_cpu() { return device().kind() == DeviceKind::cpu; }
};

[[nodiscard]] inline std::vector<std::string> device_names() {
  std::vector<std::string> names;
  for (const Device device : Device::list()) names.push_back(device.name());
  return names;
}

/// "cuda_0": test names must not contain a colon.
[[nodiscard]] inline std::string test_name(const ::testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  for (char& c : name) c = c == ':' ? '_' : c;
  return name;
}

/// Runs the tests of a suite derived from DeviceTest on every device.
#define HEADRACE_ON_EVERY_DEVICE(suite) \
  INSTANTIATE_TEST_SUITE_P(Devices, suite, ::testing::ValuesIn(device_names()), test_name)

/// Passes if a Status or Result is a success, and prints its code otherwise.
template <class R>
[[nodiscard]] ::testing::AssertionResult succeeded(const R& result) {
  if (result.ok()) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << to_string(result.error().code) << " (native " << result.error().native << ")";
}

#define EXPECT_OK(expression) EXPECT_TRUE(::headrace::testing::succeeded(expression))
#define ASSERT_OK(expression) ASSERT_TRUE(::headrace::testing::succeeded(expression))

/// True if the result is this error, whatever its native code.
template <class R>
[[nodiscard]] bool failed_with(const R& result, Errc code) {
  return !result.ok() && result.error().code == code;
}

[[nodiscard]] inline std::vector<std::byte> random_bytes(std::size_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::byte> bytes(count);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

/// Host memory filled with `bytes`, for asynchronous copies to and from a device.
[[nodiscard]] inline Buffer pinned(Device device, const std::vector<std::byte>& bytes) {
  Buffer buffer(device, MemoryKind::pinned, bytes.size());
  if (!bytes.empty()) std::memcpy(buffer.data(), bytes.data(), bytes.size());
  return buffer;
}

[[nodiscard]] inline std::vector<std::byte> content(const Buffer& buffer) {
  return {buffer.host().begin(), buffer.host().end()};
}

/// Polls until `condition()` holds; false after 30 s, far longer than any working device needs.
template <class Condition>
[[nodiscard]] bool eventually(Condition condition) {
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > give_up) return false;
    std::this_thread::yield();
  }
  return true;
}

/// Holds a stream at a host function until it is opened. Its destructor opens it, so that a failing test ends: declare
/// it after the stream. The host function shares the state, because it may return after the gate is gone.
class Gate {
 public:
  Gate() = default;
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;
  ~Gate() { open(); }
  [[nodiscard]] Status enqueue(StreamRef stream) {
    auto* shared = new std::shared_ptr<State>(state_);
    const Status called = stream.call(&Gate::hold, shared);
    if (!called) delete shared;
    return called;
  }
  void open() {
    if (!state_->opened.exchange(true)) state_->open.count_down();
  }
  /// Waits until the stream has reached the gate.
  void wait_entered() const { state_->entered.wait(); }

 private:
  struct State {
    std::latch open{1};
    std::latch entered{1};
    std::atomic<bool> opened{false};
  };
  static void hold(void* shared) {
    const std::unique_ptr<std::shared_ptr<State>> state(static_cast<std::shared_ptr<State>*>(shared));
    (*state)->entered.count_down();
    (*state)->open.wait();
  }
  std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace headrace::testing
