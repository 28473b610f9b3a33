#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "headrace/device/device.hpp"
#include "headrace/operators/detail/elements.hpp"

namespace headrace::operators {

/// A matrix as kernels read it, in host memory.
class StoredElements {
 public:
  /// Room for `count` elements, all 0.
  StoredElements(ElementType type, std::size_t count);

  /// Writes an element; whether it is finite as it is stored.
  [[nodiscard]] bool set(std::size_t index, float value) noexcept;
  [[nodiscard]] std::span<const std::byte> bytes() const noexcept;
  [[nodiscard]] ElementType type() const noexcept { return type_; }

 private:
  struct alignas(64) Line {
    std::byte bytes[64];
  };

  ElementType type_;
  std::size_t bytes_;
  std::vector<Line> lines_;
};

/// Room for `rows` rows of `columns` columns, which take `elements` elements as they are stored, all 0. Throws
/// SystemError (Errc::out_of_memory) that says how many bytes operator `name` needs.
[[nodiscard]] StoredElements room_for_rows(std::string_view name, std::uint64_t rows, std::uint32_t columns,
                                           ElementType type, std::uint64_t elements);

/// Element number `index` of an array in host memory.
[[nodiscard]] float element_at(const void* data, ElementType type, std::uint64_t index) noexcept;

/// What a device reads of memory of the host: that memory itself where kernels run on the host, else a copy.
struct Placed {
  const std::byte* data = nullptr;
  std::shared_ptr<const void> owner = {};  ///< Keeps the copy; null without one.
};

/// Throws DeviceError where the device has not that much memory.
/// @param doing  for errors
[[nodiscard]] Placed place_on(Device device, std::span<const std::byte> bytes, std::string_view doing);

/// The same with at most `device_bytes` of it, in whole pages from the first byte on, in the memory of a GPU, and the
/// rest in page-locked memory of the host, which kernels read over the link.
[[nodiscard]] Placed place_within(Device device, std::span<const std::byte> bytes, std::size_t device_bytes,
                                  std::string_view doing);

/// Number `index` of a family of random vectors of float32, uniform in [-1, 1).
void random_vector(std::uint64_t index, std::byte* to, std::uint32_t count) noexcept;

}  // namespace headrace::operators
