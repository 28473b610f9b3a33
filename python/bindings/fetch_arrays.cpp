#include <nanobind/ndarray.h>

#include <string>

#include "fetch_handle.hpp"
#include "headrace/base/error.hpp"

namespace nb = nanobind;

namespace headrace::python {

namespace {

/// NumPy's name of an item type.
const char* type_string(fetch::Type type) {
  switch (type) {
    case fetch::Type::int8: return "|i1";
    case fetch::Type::int16: return "<i2";
    case fetch::Type::int32: return "<i4";
    case fetch::Type::int64: return "<i8";
    case fetch::Type::uint16: return "<u2";
    case fetch::Type::uint32: return "<u4";
    case fetch::Type::uint64: return "<u8";
    case fetch::Type::float32: return "<f4";
    case fetch::Type::float64: return "<f8";
    default: return "|u1";
  }
}

nb::dlpack::dtype item_type(fetch::Type type) {
  switch (type) {
    case fetch::Type::int8: return nb::dtype<std::int8_t>();
    case fetch::Type::int16: return nb::dtype<std::int16_t>();
    case fetch::Type::int32: return nb::dtype<std::int32_t>();
    case fetch::Type::int64: return nb::dtype<std::int64_t>();
    case fetch::Type::uint16: return nb::dtype<std::uint16_t>();
    case fetch::Type::uint32: return nb::dtype<std::uint32_t>();
    case fetch::Type::uint64: return nb::dtype<std::uint64_t>();
    case fetch::Type::float32: return nb::dtype<float>();
    case fetch::Type::float64: return nb::dtype<double>();
    default: return nb::dtype<std::uint8_t>();
  }
}

bool on_host(const ChunkArray& array) {
  return array.fetch->fetch().request().to == fetch::Level::cpu || array.fetch->device().properties().host_memory;
}

nb::tuple shape_of(const ChunkArray& array) {
  if (array.pairs) return nb::make_tuple(array.items / 2, 2);
  return nb::make_tuple(array.items);
}

nb::tuple dlpack_device(const ChunkArray& array) {
  if (on_host(array)) return nb::make_tuple(int{nb::device::cpu::value}, 0);
  return nb::make_tuple(int{nb::device::cuda::value}, array.fetch->device().ordinal());
}

template <class Framework>
nb::object as_array(const ChunkArray& array, int device, int ordinal) {
  auto kept = std::make_unique<std::shared_ptr<FetchHandle>>(array.fetch);
  const nb::capsule owner(kept.get(),
                          [](void* held) noexcept { delete static_cast<std::shared_ptr<FetchHandle>*>(held); });
  [[maybe_unused]] const auto* const given = kept.release();  // owned by the capsule from here on
  const std::size_t shape[2] = {array.pairs ? array.items / 2 : array.items, 2};
  const nb::ndarray<Framework, nb::ro> made(array.data, array.pairs ? 2 : 1, shape, owner, nullptr,
                                            item_type(array.type), device, ordinal);
  return nb::cast(made);
}

nb::object chunk_dlpack(const ChunkArray& array, const nb::kwargs& options) {
  const int device = on_host(array) ? nb::device::cpu::value : nb::device::cuda::value;
  const int ordinal = on_host(array) ? 0 : array.fetch->device().ordinal();
  return as_array<nb::array_api>(array, device, ordinal).attr("__dlpack__")(**options);
}

nb::object chunk_numpy(const ChunkArray& array) {
  if (!on_host(array)) throw UsageError("the chunk is on the device; use __dlpack__, or copy it with to_arrow()");
  return as_array<nb::numpy>(array, nb::device::cpu::value, 0);
}

nb::dict cuda_array_interface(const ChunkArray& array) {
  if (on_host(array)) throw nb::attribute_error("a chunk on a CPU device has no __cuda_array_interface__");
  nb::dict made;
  made["shape"] = shape_of(array);
  made["typestr"] = type_string(array.type);
  made["data"] = nb::make_tuple(reinterpret_cast<std::uintptr_t>(array.data), true);
  made["strides"] = nb::none();
  made["stream"] = nb::none();
  made["version"] = 3;
  return made;
}

}  // namespace

void bind_chunk_array(nb::module_& module) {
  nb::class_<ChunkArray>(module, "ChunkArray",
                         "Values or validity of a chunk in place, not copied, read-only. Keeps the fetch alive.")
      .def_prop_ro("shape", &shape_of, nb::sig("def shape(self) -> tuple[int, ...]"))
      .def_prop_ro(
          "typestr", [](const ChunkArray& array) { return type_string(array.type); }, "In NumPy's notation.")
      .def("numpy", &chunk_numpy, nb::sig("def numpy(self) -> NDArray[typing.Any]"),
           "Only if the host can read it: on the CPU level and on CPU devices. Raises UsageError elsewhere.")
      .def("__dlpack__", &chunk_dlpack, nb::sig("def __dlpack__(self, **kwargs: typing.Any) -> typing.Any"))
      .def("__dlpack_device__", &dlpack_device, nb::sig("def __dlpack_device__(self) -> tuple[int, int]"))
      .def_prop_ro("__cuda_array_interface__", &cuda_array_interface,
                   nb::sig("def __cuda_array_interface__(self) -> dict[str, typing.Any]"), "Only on CUDA devices.");
}

}  // namespace headrace::python
