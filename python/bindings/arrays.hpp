#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

/// Memory that passes between Python and C++ without being copied.
namespace headrace::python {

/// The bytes of an object with the buffer protocol (NumPy arrays of any type, bytes, memoryview), borrowed for the life
/// of the view. Throws TypeError when it has none, UsageError when its bytes do not lie in one piece: what has to be
/// copied is for the caller to copy.
class BytesView {
 public:
  /// @param what names the argument in errors
  BytesView(nanobind::handle object, const char* what);
  ~BytesView() { PyBuffer_Release(&view_); }
  BytesView(const BytesView&) = delete;
  BytesView& operator=(const BytesView&) = delete;

  [[nodiscard]] std::span<const std::byte> bytes() const noexcept {
    return {static_cast<const std::byte*>(view_.buf), static_cast<std::size_t>(view_.len)};
  }
  /// How many items of `item_bytes` these are. Throws UsageError naming both sizes when they are no whole number.
  [[nodiscard]] std::size_t count(std::size_t item_bytes) const;
  /// Throws UsageError naming both sizes unless this is one item.
  void require_one(std::size_t item_bytes) const;

 private:
  const char* what_;
  Py_buffer view_{};
};

using Bytes1d = nanobind::ndarray<nanobind::numpy, std::uint8_t, nanobind::ndim<1>>;
using Bytes2d = nanobind::ndarray<nanobind::numpy, std::uint8_t, nanobind::ndim<2>>;
template <class T>
using Array1d = nanobind::ndarray<nanobind::numpy, T, nanobind::ndim<1>>;

/// An array to be filled, contents undefined.
template <class T>
[[nodiscard]] std::unique_ptr<T[]> make_values(std::size_t count) {
  return std::make_unique_for_overwrite<T[]>(count);
}

/// The NumPy array of `shape` that owns `values` from now on.
template <class T, class... Sizes>
[[nodiscard]] auto to_numpy(std::unique_ptr<T[]> values, Sizes... shape) {
  T* data = values.release();
  const nanobind::capsule owner(data, [](void* memory) noexcept { delete[] static_cast<T*>(memory); });
  return nanobind::ndarray<nanobind::numpy, T, nanobind::ndim<sizeof...(Sizes)>>(
      data, {static_cast<std::size_t>(shape)...}, owner);
}

}  // namespace headrace::python
