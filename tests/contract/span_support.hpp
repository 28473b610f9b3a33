#pragma once

#include <dirent.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "headrace/base/detail/bytes.hpp"
#include "headrace/base/error.hpp"
#include "headrace/device/span.hpp"
#include "tests/contract/devices.hpp"

/// Helpers shared by the tests of spans.
namespace headrace::testing {

/// Random bytes, drawn eight at a time because spans are large.
[[nodiscard]] inline std::vector<std::byte> some_bytes(std::size_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::byte> bytes(align_up(count, sizeof(std::uint64_t)));
  for (std::size_t at = 0; at < bytes.size(); at += sizeof(std::uint64_t)) {
    const std::uint64_t word = random();
    std::memcpy(&bytes[at], &word, sizeof(word));
  }
  bytes.resize(count);
  return bytes;
}

/// A test of a span of device(), which has virtual memory management.
class SpanTest : public DeviceTest {
 public:
  void SetUp() override {
    if (!device().properties().virtual_memory_management) GTEST_SKIP() << "no virtual memory management";
  }

  [[nodiscard]] static Place here() { return Place::on(device()); }
  /// Another device that reaches the memory of device(), if the machine has one.
  [[nodiscard]] static std::optional<Device> peer() {
    if (on_cpu()) return Device::parse("cpu:" + std::to_string(device().ordinal() + 1));
    for (const Device other : Device::list()) {
      if (other.kind() != device().kind() || other == device()) continue;
      try {
        const Span both(device(), kPageBytes, Placement::all(here()), {.accessed_by = {other}});
        return other;
      } catch (const UsageError&) {  // out of reach
      }
    }
    return {};
  }
  /// Places that a test can give to pages: the device, the host, and a peer if there is one.
  [[nodiscard]] static std::vector<Place> some_places() {
    std::vector<Place> places{here(), Place::host()};
    if (const auto other = peer()) places.push_back(Place::on(*other));
    return places;
  }

  /// Fills the span through the device and waits until that is done.
  static void write(const Span& span, StreamRef stream, const std::vector<std::byte>& bytes) {
    const Buffer source = pinned(device(), bytes);
    ASSERT_OK(stream.copy(span.data(), source.data(), span.bytes()));
    ASSERT_OK(stream.wait());
  }
  [[nodiscard]] static std::vector<std::byte> read(const Span& span, StreamRef stream) {
    const Buffer back = pinned(device(), std::vector<std::byte>(span.bytes()));
    EXPECT_OK(stream.copy(back.data(), span.data(), span.bytes()));
    EXPECT_OK(stream.wait());
    return content(back);
  }
};

/// Expects `body` to throw a UsageError that contains `why`.
template <class Body>
void expect_usage_error(Body body, const char* why) {
  try {
    body();
    FAIL() << "must be refused: " << why;
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr(why));
  }
}

/// Resources of the process that a span must give back.
struct Held {
  std::size_t free_bytes = 0;
  std::size_t peer_free_bytes = 0;
  std::size_t descriptors = 0;
  std::size_t mappings = 0;
  friend bool operator==(const Held&, const Held&) = default;
};

[[nodiscard]] inline std::size_t open_descriptors() {
  std::size_t count = 0;
  DIR* const folder = opendir("/proc/self/fd");
  while (folder != nullptr && readdir(folder) != nullptr) ++count;
  if (folder != nullptr) closedir(folder);
  return count;
}

/// Mappings of span pages and address space reserved for them. Other mappings come and go with the process's allocator.
[[nodiscard]] inline std::size_t page_mappings() {
  std::size_t count = 0;
  std::ifstream file("/proc/self/maps");
  for (std::string line; std::getline(file, line);) count += line.find("headrace-pages") != std::string::npos ? 1 : 0;
  return count;
}

/// Permissions of the mapping at an address as /proc shows them: "rw-s", "---s".
[[nodiscard]] inline std::string permissions_at(const void* address) {
  const auto wanted = reinterpret_cast<std::uintptr_t>(address);
  std::ifstream file("/proc/self/maps");
  for (std::string line; std::getline(file, line);) {
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
    char permissions[5]{};
    if (std::sscanf(line.c_str(), "%lx-%lx %4s", &begin, &end, permissions) != 3) continue;
    if (begin <= wanted && wanted < end) return permissions;
  }
  return "none";
}

[[nodiscard]] inline Held held(Device device, Device other) {
  return {.free_bytes = device.memory().free_bytes,
          .peer_free_bytes = other.memory().free_bytes,
          .descriptors = open_descriptors(),
          .mappings = page_mappings()};
}

}  // namespace headrace::testing
