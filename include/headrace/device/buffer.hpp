#pragma once

// A Buffer owns memory of one kind: device memory, or host memory that is pageable, pinned, mapped or managed. A
// RegisteredMemory page-locks host memory that other code owns.
//
//     headrace::Stream stream(headrace::Device::parse("best"));
//     headrace::Buffer here(stream.device(), headrace::MemoryKind::pinned, 4096);
//     headrace::Buffer there(stream.device(), headrace::MemoryKind::device, 4096);
//     here.as<float>()[0] = 1.5F;
//     stream.copy(there.data(), here.data(), here.bytes()).or_throw("copying to the device");
//     stream.wait().or_throw("copying to the device");
//     alignas(headrace::RegisteredMemory::kAlignment) static std::byte pages[1 << 20];  // or a mapped file
//     headrace::RegisteredMemory registered(stream.device(), pages, sizeof(pages));  // kernels reach it

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>

#include "headrace/base/result.hpp"
#include "headrace/device/device.hpp"
#include "headrace/device/stream.hpp"

namespace headrace {

/// Where memory lies and who can reach it.
enum class MemoryKind : std::uint8_t {
  pageable,        ///< Host memory from the system's allocator. The device cannot reach it.
  pinned,          ///< Page-locked host memory: copies are asynchronous and run at link speed.
  mapped,          ///< Page-locked host memory that kernels read and write in place, over the link.
  managed,         ///< One address for both; kept in host memory and mapped for the device (preferred location host).
  device,          ///< The device's own memory. The host cannot reach it on CUDA.
  stream_ordered,  ///< The device's own, allocated and freed in stream order.
  pool,            ///< The device's own, from blocks kept by size class and reused without asking the driver.
};

/// "pinned", "stream-ordered", ...; parse_memory_kind() accepts it.
[[nodiscard]] std::string_view to_string(MemoryKind kind) noexcept;
/// The kind of that name. Throws UsageError that lists the kinds if there is none.
[[nodiscard]] MemoryKind parse_memory_kind(std::string_view text);

/// True if the host may read and write memory of this kind on every device. On a CPU device it may in any case.
[[nodiscard]] constexpr bool host_accessible(MemoryKind kind) noexcept {
  return kind == MemoryKind::pageable || kind == MemoryKind::pinned || kind == MemoryKind::mapped ||
         kind == MemoryKind::managed;
}

/// True if kernels may read and write memory of this kind.
[[nodiscard]] constexpr bool device_accessible(MemoryKind kind) noexcept {
  return kind != MemoryKind::pageable && kind != MemoryKind::pinned;
}

/// Owns memory of one kind, aligned to at least 256 bytes, with undefined contents. Null only if it has 0 bytes.
class Buffer {
 public:
  Buffer() noexcept = default;
  /// Throws DeviceError (Errc::out_of_memory, native CUDA code) that says how much was asked for, of which kind, and
  /// how much is free. `kind` must not be stream_ordered.
  Buffer(Device device, MemoryKind kind, std::size_t bytes);
  /// Memory that work enqueued on `stream` from now on may use, and that is freed in stream order.
  Buffer(StreamRef stream, MemoryKind kind, std::size_t bytes);

  /// As the constructor, but returns the error instead of throwing: Errc::out_of_memory with the native code, or
  /// Errc::invalid_argument for stream_ordered.
  [[nodiscard]] static Result<Buffer> allocate(Device device, MemoryKind kind, std::size_t bytes) noexcept;
  /// As the constructor for a stream, but returns the error instead of throwing.
  [[nodiscard]] static Result<Buffer> allocate(StreamRef stream, MemoryKind kind, std::size_t bytes) noexcept;

  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;
  ~Buffer();

  [[nodiscard]] std::byte* data() const noexcept { return data_; }     ///< The first byte; null if empty.
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }  ///< The size asked for, in bytes.
  [[nodiscard]] MemoryKind kind() const noexcept { return kind_; }     ///< The kind asked for.
  /// The memory as an array of T, without a check of its size.
  template <class T>
  [[nodiscard]] T* as() const noexcept {
    static_assert(std::is_trivially_copyable_v<T>);
    return reinterpret_cast<T*>(data_);
  }
  /// The memory as bytes for the host. Only for kinds that the host can access, see host_accessible().
  [[nodiscard]] std::span<std::byte> host() const noexcept { return {data_, bytes_}; }
  /// Frees the memory now rather than at destruction.
  void reset() noexcept;

 private:
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
  MemoryKind kind_ = MemoryKind::pageable;
  detail::DeviceBackend* device_ = nullptr;
  detail::StreamBackend* stream_ = nullptr;  ///< Only for stream_ordered.
};

/// Page-locks host memory that other code owns (a mapped file, a NumPy array), so that kernels of every device reach it
/// while this object lives. Takes about 30 us per MiB, a tenth of allocating pinned memory; on a CPU device no time.
class RegisteredMemory {
 public:
  /// Address and size must be multiples of this many bytes.
  static constexpr std::size_t kAlignment = 4096;

  /// Locks `bytes` bytes at `data`.
  /// @param data   a multiple of kAlignment, as is `bytes`; must stay allocated.
  ///
  /// Throws UsageError (null, no bytes, alignment) or DeviceError (registered already, more than may be locked, or
  /// memory that this device's kernels would find at another address).
  RegisteredMemory(Device device, void* data, std::size_t bytes);
  RegisteredMemory(RegisteredMemory&& other) noexcept;
  RegisteredMemory& operator=(RegisteredMemory&& other) noexcept;
  /// Unlocks the memory. May wait for work on the device.
  ~RegisteredMemory();

  [[nodiscard]] std::byte* data() const noexcept { return data_; }     ///< The registered memory.
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }  ///< Its size, in bytes.

 private:
  void reset() noexcept;

  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
  detail::DeviceBackend* device_ = nullptr;
};

}  // namespace headrace
