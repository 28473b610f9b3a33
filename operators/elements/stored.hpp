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

/// What a device reads of memory of the host: that memory itself where kernels run on the host, else a copy.
struct Placed {
  const std::byte* data = nullptr;
  std::shared_ptr<const void> owner = {};  ///< Keeps the copy; null without one.
};

/// Throws DeviceError where the device has not that much memory.
/// @param doing  for errors
[[nodiscard]] Placed place_on(Device device, std::span<const std::byte> bytes, std::string_view doing);

/// Number `index` of a family of random vectors of float32, uniform in [-1, 1).
void random_vector(std::uint64_t index, std::byte* to, std::uint32_t count) noexcept;

}  // namespace headrace::operators
