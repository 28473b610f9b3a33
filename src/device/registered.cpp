#include "headrace/device/buffer.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <utility>

#include "device/backend.hpp"
#include "headrace/base/detail/bytes.hpp"
#include "headrace/base/error.hpp"

namespace headrace {

RegisteredMemory::RegisteredMemory(Device device, void* data, std::size_t bytes)
    : data_(static_cast<std::byte*>(data)), bytes_(bytes), device_(&device.backend()) {
  if (data == nullptr || bytes == 0) throw UsageError("the memory to register is null or has no bytes");
  if (reinterpret_cast<std::uintptr_t>(data) % kAlignment != 0 || bytes % kAlignment != 0) {
    throw UsageError(fmt::format("registered memory must start and end on a multiple of {} bytes", kAlignment));
  }
  device_->register_host(data, bytes)
      .or_throw(fmt::format("page-locking {} for {} (ulimit -l limits how much a process may lock)",
                            format_bytes(bytes), device.name()));
}

RegisteredMemory::RegisteredMemory(RegisteredMemory&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)), device_(other.device_) {}

RegisteredMemory& RegisteredMemory::operator=(RegisteredMemory&& other) noexcept {
  if (this != &other) {
    reset();
    data_ = std::exchange(other.data_, nullptr);
    bytes_ = std::exchange(other.bytes_, 0);
    device_ = other.device_;
  }
  return *this;
}

RegisteredMemory::~RegisteredMemory() { reset(); }

void RegisteredMemory::reset() noexcept {
  if (data_ != nullptr) device_->unregister_host(data_);
  data_ = nullptr;
}

}  // namespace headrace
