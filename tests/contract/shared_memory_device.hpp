#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "headrace/device/detail/foreign_memory.hpp"
#include "tests/contract/faulty_device.hpp"

/// A device that shares memory through handles, as a CUDA device does.
namespace headrace::testing {

/// Memory that a client shares, and the errors that its device is to return.
struct ClientMemory {
  std::vector<std::byte> bytes;
  Status opens;                 ///< Returned instead of the memory.
  Status copies;                ///< Returned for each copy.
  std::atomic<int> mapped = 0;  ///< How often the memory is mapped now.
  std::atomic<int> calls = 0;   ///< Copies so far.
};

class MappedClientMemory final : public ForeignMemory {
 public:
  explicit MappedClientMemory(ClientMemory& client) : client_(client) { ++client_.mapped; }
  ~MappedClientMemory() override { --client_.mapped; }
  [[nodiscard]] std::size_t bytes() const noexcept override { return client_.bytes.size(); }
  [[nodiscard]] Status read(std::size_t at, void* to, std::size_t bytes) noexcept override {
    return copy(at, to, client_.bytes.data() + at, bytes);
  }
  [[nodiscard]] Status write(std::size_t at, const void* from, std::size_t bytes) noexcept override {
    return copy(at, client_.bytes.data() + at, from, bytes);
  }

 private:
  [[nodiscard]] Status copy(std::size_t at, void* to, const void* from, std::size_t bytes) noexcept {
    ++client_.calls;
    if (!client_.copies) return client_.copies;
    if (at > client_.bytes.size() || bytes > client_.bytes.size() - at) return Errc::invalid_argument;
    std::memcpy(to, from, bytes);
    return {};
  }

  ClientMemory& client_;
};

/// The handle that this device knows: 64 times the number 7.
inline constexpr auto kClientHandle = [] {
  std::array<std::byte, kMemoryHandleBytes> handle{};
  handle.fill(std::byte{7});
  return handle;
}();

class SharedMemoryDevice final : public FaultyDevice {
 public:
  explicit SharedMemoryDevice(std::size_t bytes) { client.bytes.resize(bytes); }

  [[nodiscard]] Result<std::unique_ptr<ForeignMemory>> open_foreign_memory(
      std::span<const std::byte> handle) noexcept override {
    if (!client.opens) return client.opens.error();
    if (!std::ranges::equal(handle, kClientHandle)) return Errc::invalid_argument;
    return std::unique_ptr<ForeignMemory>(std::make_unique<MappedClientMemory>(client));
  }

  ClientMemory client;
};

}  // namespace headrace::testing
