#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

/// Passes memory between Python and C++ without copies.
namespace headrace::python {

/// The bytes of an object with the buffer protocol (NumPy arrays of any type, bytes, memoryview), borrowed for the life
/// of the view. Throws TypeError if the object has no buffer, and UsageError if its bytes are not contiguous; making a
/// copy is left to the caller.
class BytesView {
 public:
  /// @param what  names the argument in errors
  BytesView(nanobind::handle object, const char* what);
  ~BytesView() { PyBuffer_Release(&view_); }
  BytesView(const BytesView&) = delete;
  BytesView& operator=(const BytesView&) = delete;

  [[nodiscard]] std::span<const std::byte> bytes() const noexcept {
    return {static_cast<const std::byte*>(view_.buf), static_cast<std::size_t>(view_.len)};
  }
  /// The number of items of `item_bytes`. Throws UsageError, naming both sizes, if it is not a whole number.
  [[nodiscard]] std::size_t count(std::size_t item_bytes) const;
  /// Throws UsageError, naming both sizes, unless this is one item.
  void require_one(std::size_t item_bytes) const;

 private:
  const char* what_;
  Py_buffer view_{};
};

using Bytes1d = nanobind::ndarray<nanobind::numpy, std::uint8_t, nanobind::ndim<1>>;
using Bytes2d = nanobind::ndarray<nanobind::numpy, std::uint8_t, nanobind::ndim<2>>;
template <class T>
using Array1d = nanobind::ndarray<nanobind::numpy, T, nanobind::ndim<1>>;

/// An uninitialised array.
template <class T>
[[nodiscard]] std::unique_ptr<T[]> make_values(std::size_t count) {
  return std::make_unique_for_overwrite<T[]>(count);
}

/// A NumPy array of `shape` that takes ownership of `values`.
template <class T, class... Sizes>
[[nodiscard]] auto to_numpy(std::unique_ptr<T[]> values, Sizes... shape) {
  T* data = values.release();
  const nanobind::capsule owner(data, [](void* memory) noexcept { delete[] static_cast<T*>(memory); });
  return nanobind::ndarray<nanobind::numpy, T, nanobind::ndim<sizeof...(Sizes)>>(
      data, {static_cast<std::size_t>(shape)...}, owner);
}

}  // namespace headrace::python
