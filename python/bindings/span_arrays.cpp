#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>

#include "headrace/base/error.hpp"
#include "span_handle.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace headrace::python {

namespace {

/// What an array owns of its span: a reference to the Python object, and a place in its count of views.
struct View {
  PyObject* span;
  SpanHandle* handle;
  bool by_host;
};

nb::capsule make_view(nb::handle_t<SpanHandle> self, SpanHandle& handle, bool by_host) {
  auto made = std::make_unique<View>(View{self.ptr(), &handle, by_host});
  nb::capsule owner(made.get(), [](void* memory) noexcept {
    const std::unique_ptr<View> ended(static_cast<View*>(memory));
    ended->by_host ? ended->handle->host_view_ends() : ended->handle->device_view_ends();
    Py_DECREF(ended->span);
  });
  const View* const view = made.release();  // owned by the capsule from here on
  Py_INCREF(view->span);
  by_host ? handle.host_view_starts() : handle.device_view_starts();
  return owner;
}

nb::object span_numpy(nb::handle_t<SpanHandle> self) {
  auto& handle = nb::cast<SpanHandle&>(self);
  const bool writable = handle.require_host_readable();
  auto* const data = reinterpret_cast<std::uint8_t*>(handle.span().data());
  const std::size_t bytes = handle.span().bytes();
  const nb::capsule owner = make_view(self, handle, true);
  if (writable) return nb::cast(nb::ndarray<nb::numpy, std::uint8_t, nb::ndim<1>>(data, {bytes}, owner));
  return nb::cast(nb::ndarray<nb::numpy, const std::uint8_t, nb::ndim<1>>(data, {bytes}, owner));
}

nb::object array_of(nb::handle_t<SpanHandle> self, nb::handle dtype, nb::handle shape, std::size_t offset) {
  const nb::object bytes = span_numpy(self);
  const nb::module_ numpy = nb::module_::import_("numpy");
  const nb::object type = numpy.attr("dtype")(dtype);
  const auto item_bytes = nb::cast<std::size_t>(type.attr("itemsize"));
  const std::size_t total = nb::cast<SpanHandle&>(self).span().bytes();
  const auto require = [](bool inside) {
    if (!inside) throw UsageError("the array is not in the span");
  };
  require(offset <= total && item_bytes > 0);
  std::size_t count = (total - offset) / item_bytes;
  if (!shape.is_none()) {
    const nb::object items = numpy.attr("prod")(shape, "dtype"_a = "object");  // as an int that does not overflow
    const auto is = [&](int how, std::size_t other) {
      return PyObject_RichCompareBool(items.ptr(), nb::int_(other).ptr(), how) == 1;
    };
    require(is(Py_GE, 0) && is(Py_LE, count));
    count = nb::cast<std::size_t>(nb::int_(items));
  }
  const nb::slice part(nb::int_(offset), nb::int_(offset + count * item_bytes), nb::none());
  const nb::object typed = bytes[part].attr("view")(type);
  return shape.is_none() ? typed : nb::object(typed.attr("reshape")(shape));
}

nb::tuple span_dlpack_device(const SpanHandle& handle) {
  const Device device = handle.span().device();
  if (device.properties().host_memory) return nb::make_tuple(int{nb::device::cpu::value}, 0);
  return nb::make_tuple(int{nb::device::cuda::value}, device.ordinal());
}

nb::object span_dlpack(nb::handle_t<SpanHandle> self, const nb::kwargs& options) {
  auto& handle = nb::cast<SpanHandle&>(self);
  const bool on_cpu = handle.span().device().properties().host_memory;
  const bool writable = on_cpu ? handle.require_host_readable() : handle.require_device_readable();
  const int type = on_cpu ? nb::device::cpu::value : nb::device::cuda::value;
  const int ordinal = on_cpu ? 0 : handle.span().device().ordinal();
  auto* const data = reinterpret_cast<std::uint8_t*>(handle.span().data());
  const std::size_t bytes = handle.span().bytes();
  const nb::capsule owner = make_view(self, handle, on_cpu);
  const auto export_as = [&](auto array) { return nb::cast(array).attr("__dlpack__")(**options); };
  if (writable) {
    return export_as(nb::ndarray<nb::array_api, std::uint8_t, nb::ndim<1>>(data, {bytes}, owner, {},
                                                                           nb::dtype<std::uint8_t>(), type, ordinal));
  }
  return export_as(nb::ndarray<nb::array_api, const std::uint8_t, nb::ndim<1>>(
      data, {bytes}, owner, {}, nb::dtype<std::uint8_t>(), type, ordinal));
}

nb::dict span_cuda_array(const SpanHandle& handle) {
  if (handle.span().device().kind() != DeviceKind::cuda) {
    throw nb::attribute_error("a span of a CPU device has no __cuda_array_interface__");
  }
  const bool writable = handle.require_device_readable();
  nb::dict array;
  array["shape"] = nb::make_tuple(handle.span().bytes());
  array["typestr"] = "|u1";
  array["data"] = nb::make_tuple(reinterpret_cast<std::uintptr_t>(handle.span().data()), !writable);
  array["strides"] = nb::none();
  array["stream"] = nb::none();
  array["version"] = 3;
  return array;
}

int get_span_buffer(PyObject* self, Py_buffer* view, int flags) noexcept {
  view->obj = nullptr;
  try {
    auto& handle = nb::cast<SpanHandle&>(nb::handle(self));
    const bool writable = handle.require_host_readable();
    if (PyBuffer_FillInfo(view, self, handle.span().data(), static_cast<Py_ssize_t>(handle.span().bytes()),
                          writable ? 0 : 1, flags) != 0) {
      return -1;
    }
    handle.host_view_starts();
    return 0;
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_BufferError, error.what());
    return -1;
  }
}

void release_span_buffer(PyObject* self, Py_buffer* /*view*/) noexcept {
  nb::inst_ptr<SpanHandle>(nb::handle(self))->host_view_ends();
}

}  // namespace

PyType_Slot* span_buffer_slots() noexcept {
  static PyType_Slot slots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(&get_span_buffer)},
                                {Py_bf_releasebuffer, reinterpret_cast<void*>(&release_span_buffer)},
                                {0, nullptr}};
  return slots;
}

void bind_span_arrays(nb::class_<SpanHandle>& span) {
  span.def("numpy", &span_numpy, nb::sig("def numpy(self) -> NDArray[numpy.uint8]"),
           "The bytes as an array, without a copy, read-only if the host may only read. Raises UsageError if the host "
           "may not read a page, such as a page on a device with CUDA.")
      .def("array", &array_of, "dtype"_a, "shape"_a = nb::none(), "offset"_a = 0,
           nb::sig(
               "def array(self, dtype: typing.Any, shape: int | collections.abc.Sequence[int] | None = None, offset: "
               "int = 0) -> NDArray[typing.Any]"),
           "The same as items of a type, from byte `offset` on; as many as there are if `shape` is None.")
      .def("__dlpack__", &span_dlpack, nb::sig("def __dlpack__(self, **kwargs: typing.Any) -> typing.Any"),
           "The bytes for torch.from_dlpack() and similar functions, without a copy. Raises UsageError if the device "
           "may not read a page.")
      .def("__dlpack_device__", &span_dlpack_device, nb::sig("def __dlpack_device__(self) -> tuple[int, int]"))
      .def_prop_ro("__cuda_array_interface__", &span_cuda_array,
                   nb::sig("def __cuda_array_interface__(self) -> dict[str, typing.Any]"),
                   "For CuPy, Numba and PyTorch; only on CUDA devices.");
}

}  // namespace headrace::python
