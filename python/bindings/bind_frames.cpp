#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "bindings.hpp"
#include "convert.hpp"
#include "frame_handle.hpp"
#include "gil.hpp"
#include "headrace/base/detail/bytes.hpp"
#include "headrace/ingest/builder.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace headrace::python {

namespace {

const HeldFrame& held_by(const FrameHandle& handle) {
  if (!handle.held) throw UsageError("the frame has been released");
  return *handle.held;
}

bool on_host(const HeldFrame& held) { return held.ring().device().properties().host_memory; }

template <class Framework>
nb::object as_array(const FrameHandle& handle, int device, int ordinal) {
  const HeldFrame& held = held_by(handle);
  auto kept = std::make_unique<std::shared_ptr<HeldFrame>>(handle.held);
  const nb::capsule owner(kept.get(),
                          [](void* memory) noexcept { delete static_cast<std::shared_ptr<HeldFrame>*>(memory); });
  [[maybe_unused]] const auto* const given = kept.release();  // owned by the capsule from here on
  const std::size_t shape[1] = {held.item_count()};
  const nb::ndarray<Framework> made(held.frame().data, 1, shape, owner, nullptr,
                                    held.is_float() ? nb::dtype<float>() : nb::dtype<std::uint8_t>(), device, ordinal);
  return nb::cast(made);
}

nb::object numpy_of(const FrameHandle& handle) {
  if (!on_host(held_by(handle))) throw UsageError("the frame is on the device; use __dlpack__, or copy it");
  return as_array<nb::numpy>(handle, nb::device::cpu::value, 0);
}

nb::object copied_to_host(const FrameHandle& handle, std::size_t offset, std::optional<std::size_t> count) {
  const std::shared_ptr<HeldFrame> held = handle.held;
  const ingest::Frame& frame = held_by(handle).frame();
  const std::size_t bytes = count.value_or(frame.bytes - std::min(offset, frame.bytes));
  if (offset > frame.bytes || bytes > frame.bytes - offset) {
    throw UsageError(
        fmt::format("a frame of {} bytes does not have {} bytes from byte {} on", frame.bytes, bytes, offset));
  }
  auto memory = std::make_unique<std::uint8_t[]>(bytes);
  if (bytes != 0) {
    const GilRelease released;
    const Stream stream(held->ring().device());
    stream.copy(memory.get(), frame.data + offset, bytes).or_throw("copying a frame");
    stream.wait().or_throw("copying a frame");
  }
  const nb::capsule owner(memory.get(), [](void* kept) noexcept { delete[] static_cast<std::uint8_t*>(kept); });
  return nb::cast(nb::ndarray<nb::numpy, std::uint8_t, nb::ndim<1>>(memory.release(), {bytes}, owner));
}

nb::tuple dlpack_device(const FrameHandle& handle) {
  const HeldFrame& held = held_by(handle);
  if (on_host(held)) return nb::make_tuple(int{nb::device::cpu::value}, 0);
  return nb::make_tuple(int{nb::device::cuda::value}, held.ring().device().ordinal());
}

nb::object dlpack(const FrameHandle& handle, const nb::kwargs& options) {
  const HeldFrame& held = held_by(handle);
  const int device = on_host(held) ? nb::device::cpu::value : nb::device::cuda::value;
  const int ordinal = on_host(held) ? 0 : held.ring().device().ordinal();
  return as_array<nb::array_api>(handle, device, ordinal).attr("__dlpack__")(**options);
}

nb::dict cuda_array_interface(const FrameHandle& handle) {
  const HeldFrame& held = held_by(handle);
  if (on_host(held)) throw nb::attribute_error("a frame of a CPU device has no __cuda_array_interface__");
  nb::dict array;
  array["shape"] = nb::make_tuple(held.item_count());
  array["typestr"] = held.is_float() ? "<f4" : "|u1";
  array["data"] = nb::make_tuple(reinterpret_cast<std::uintptr_t>(held.frame().data), false);
  array["strides"] = nb::none();
  array["stream"] = nb::none();
  array["version"] = 3;
  return array;
}

/// The view keeps the frame alive in the same way as its arrays do: by its own reference, in `internal`.
template <class Handle>
int get_buffer(PyObject* self, Py_buffer* view, int flags) noexcept {
  view->obj = nullptr;
  try {
    const FrameHandle& handle = nb::cast<Handle&>(nb::handle(self)).as_frame();
    const HeldFrame& held = held_by(handle);
    if (!on_host(held)) throw UsageError("the frame is on the device; use __dlpack__, or copy it");
    auto kept = std::make_unique<std::shared_ptr<HeldFrame>>(handle.held);
    if (PyBuffer_FillInfo(view, self, held.frame().data, static_cast<Py_ssize_t>(held.frame().bytes), 0, flags) != 0) {
      return -1;
    }
    view->internal = kept.release();
    return 0;
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_BufferError, error.what());
    return -1;
  }
}

void release_buffer(PyObject* /*self*/, Py_buffer* view) noexcept {
  delete static_cast<std::shared_ptr<HeldFrame>*>(view->internal);
}

template <class Handle>
PyType_Slot* buffer_slots() noexcept {
  static PyType_Slot slots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(&get_buffer<Handle>)},
                                {Py_bf_releasebuffer, reinterpret_cast<void*>(&release_buffer)},
                                {0, nullptr}};
  return slots;
}

std::vector<std::uint64_t> presence_of(const FrameHandle& handle) {
  const auto presence = held_by(handle).frame().presence;
  return {presence.begin(), presence.end()};
}

/// The methods that expose a frame, or a part of one, as an array.
template <class Handle>
void bind_arrays(nb::class_<Handle>& made) {
  made.def("__len__", [](const Handle& handle) { return held_by(handle.as_frame()).item_count(); })
      .def(
          "numpy", [](const Handle& handle) { return numpy_of(handle.as_frame()); },
          nb::sig("def numpy(self) -> NDArray[typing.Any]"),
          "An array of uint8, or of float32 if it was converted to that; not copied. Raises UsageError if it is not on "
          "a CPU device.")
      .def(
          "to_host",
          [](const Handle& handle, std::size_t offset, std::optional<std::size_t> count) {
            return copied_to_host(handle.as_frame(), offset, count);
          },
          "offset"_a = 0, "count"_a.none() = nb::none(),
          nb::sig("def to_host(self, offset: int = 0, count: int | None = None) -> NDArray[typing.Any]"),
          "A copy, as uint8, of its bytes from `offset` on, from any device.")
      .def(
          "__dlpack__",
          [](const Handle& handle, const nb::kwargs& options) { return dlpack(handle.as_frame(), options); },
          nb::sig("def __dlpack__(self, **kwargs: typing.Any) -> typing.Any"))
      .def(
          "__dlpack_device__", [](const Handle& handle) { return dlpack_device(handle.as_frame()); },
          nb::sig("def __dlpack_device__(self) -> tuple[int, int]"))
      .def_prop_ro(
          "__cuda_array_interface__", [](const Handle& handle) { return cuda_array_interface(handle.as_frame()); },
          nb::sig("def __cuda_array_interface__(self) -> dict[str, typing.Any]"), "Only on CUDA devices.");
}

std::vector<std::tuple<std::uint64_t, std::uint64_t>> missing_of(const FrameHandle& handle) {
  std::vector<std::tuple<std::uint64_t, std::uint64_t>> made;
  for (const ingest::Interval& one : held_by(handle).missing()) made.emplace_back(one.begin, one.end);
  return made;
}

void bind_frame(nb::module_& module) {
  nb::class_<FrameHandle> made(module, "Frame", nb::type_slots(buffer_slots<FrameHandle>()),
                               "A section of a stream, on a device. Its buffer is refilled once it and every array "
                               "over it are gone; GPU work on it must be done by then.");
  made.def_prop_ro("number", [](const FrameHandle& handle) { return held_by(handle).frame().number; })
      .def_prop_ro(
          "stream_offset", [](const FrameHandle& handle) { return held_by(handle).frame().stream_offset; },
          "Stream offset of its first byte.")
      .def_prop_ro(
          "bytes", [](const FrameHandle& handle) { return held_by(handle).frame().bytes; },
          "Bytes in the frame, after conversion if the stream is converted.")
      .def_prop_ro(
          "missing_bytes", [](const FrameHandle& handle) { return held_by(handle).frame().missing_bytes; },
          "Stream bytes of packets that never came. They are zero in the frame.")
      .def_prop_ro("presence", &presence_of, "Words with a bit for each packet that came; empty if none is missing.")
      .def_prop_ro("missing", &missing_of,
                   "For a followed TCP stream: where bytes are zeros because the capture lacks them, as pairs of "
                   "stream offsets, from the first to before the second.")
      .def_prop_ro(
          "lengths",
          [](const FrameHandle& handle) {
            const auto lengths = held_by(handle).frame().lengths;
            return std::vector<std::uint16_t>(lengths.begin(), lengths.end());
          },
          "Bytes that each packet brought, 0 if it is missing; empty if all that came fill their places. The bytes "
          "after a short packet are zero in the frame.")
      .def_ro("stream", &FrameHandle::stream, "The stream's number: a receiver counts its streams from 0.")
      .def_prop_ro(
          "peer",
          [](const FrameHandle& handle) {
            return handle.peer.empty() ? std::optional<std::string>{} : std::optional(handle.peer);
          },
          "The sender, '10.0.0.1:40000'; None if unknown.")
      .def(
          "release", [](FrameHandle& handle) { handle.held.reset(); },
          "Releases it now; arrays over it stay valid, and keep the buffer.");
  bind_arrays(made);
}

void bind_frames_part(nb::module_& module) {
  nb::class_<PartHandle> made(
      module, "FramePart", nb::type_slots(buffer_slots<PartHandle>()),
      "The bytes that have come so far of an incomplete frame, requested by Receiver.peek(). The frame follows later, "
      "with the same bytes, and its buffer is not refilled while this or an array over it is kept.");
  made.def_prop_ro(
          "stream_offset", [](const PartHandle& part) { return held_by(part.frame).frame().stream_offset; },
          "Stream offset of its first byte.")
      .def_prop_ro("bytes", [](const PartHandle& part) { return held_by(part.frame).frame().bytes; })
      .def_prop_ro("stream", [](const PartHandle& part) { return part.frame.stream; })
      .def_prop_ro("peer", [](const PartHandle& part) { return part.frame.peer; })
      .def(
          "release", [](PartHandle& part) { part.frame.held.reset(); },
          "Releases it now; arrays over it stay valid, and keep the buffer.");
  bind_arrays(made);
}

/// A ring in host memory, a builder, and the frames of one stream.
class FrameBuilder {
 public:
  FrameBuilder(Device device, std::size_t ring_bytes, const ingest::FrameOptions& frames,
               const ingest::BuilderOptions& options)
      : ring_(device, MemoryKind::mapped, align_up(ring_bytes, std::size_t{256})),
        frames_(std::make_shared<ingest::FrameRing>(device, frames)),
        builder_(device, ring_, options) {
    builder_.attach(0, *frames_);
  }

  [[nodiscard]] const Buffer& ring() const noexcept { return ring_; }
  [[nodiscard]] ingest::FrameRing& frames() noexcept { return *frames_; }
  [[nodiscard]] ingest::Builder& builder() noexcept { return builder_; }
  [[nodiscard]] std::optional<FrameHandle> next() {
    builder_.wait().or_throw("building frames");
    const auto frame = frames_->try_take().or_throw("taking a frame");
    if (!frame) return {};
    return FrameHandle{std::make_shared<HeldFrame>(frames_, *frame)};
  }

 private:
  Buffer ring_;
  std::shared_ptr<ingest::FrameRing> frames_;
  ingest::Builder builder_;
};

using PieceTuple = std::tuple<std::uint64_t, std::uint64_t, std::uint32_t>;

void place(FrameBuilder& self, const std::vector<PieceTuple>& pieces, std::uint64_t ring_end) {
  std::vector<ingest::Piece> converted;
  converted.reserve(pieces.size());
  for (const auto& [ring_offset, stream_offset, length] : pieces) {
    converted.push_back({.ring_offset = ring_offset, .stream_offset = stream_offset, .length = length});
  }
  const Status placed = self.builder().place(converted, ring_end);
  if (!placed && placed.error().code == Errc::invalid_argument) {
    throw UsageError("a piece lies outside the ring, or the frames have no space for it (see reserved_end)");
  }
  placed.or_throw("placing pieces");
}

void close_frame(FrameBuilder& self, std::uint64_t frame, std::uint32_t packet_bytes,
                 const std::vector<std::uint64_t>& presence, const std::vector<std::uint16_t>& lengths) {
  const ingest::FrameEnd end{.bytes = self.frames().options().frame_bytes,
                             .packet_bytes = packet_bytes,
                             .presence = presence,
                             .lengths = lengths};
  const Status closed = self.builder().close(0, frame, end);
  if (!closed && closed.error().code == Errc::invalid_argument) {
    throw UsageError(
        fmt::format("frame {} cannot be closed: it has no space yet, is complete, or its bytes do not match "
                    "packet_bytes, presence and lengths",
                    frame));
  }
  closed.or_throw("closing a frame");
}

void bind_builder(nb::module_& module) {
  nb::class_<FrameBuilder>(module, "FrameBuilder",
                           "Builds frames on a device from pieces of a ring in host memory, for packets that Python "
                           "code has received by itself. Iterating gives the frames that are READY, in order.")
      .def(
          "__init__",
          [](FrameBuilder* self, const DeviceOrName& device, std::size_t frame_bytes, std::uint32_t frame_count,
             std::size_t ring_bytes, const std::string& way, const std::string& ring_access,
             const std::string& conversion) {
            new (self) FrameBuilder(
                to_device(device), ring_bytes,
                {.frame_bytes = frame_bytes,
                 .frame_count = frame_count,
                 .conversion = ingest::parse_conversion(conversion)},
                {.way = ingest::parse_copy_way(way), .ring_access = ingest::parse_ring_access(ring_access)});
          },
          "device"_a = "best", nb::kw_only(), "frame_bytes"_a = 64 * kMiB, "frame_count"_a = 4,
          "ring_bytes"_a = 64 * kMiB, "way"_a = "automatic", "ring_access"_a = "automatic", "conversion"_a = "none",
          "`way` is one of copy_ways(); `ring_access` automatic, direct, slots or payloads; `conversion` none, swap2, "
          "swap4, swap8, int8-to-float, int16-to-float or int16-big-endian-to-float.")
      .def_prop_ro(
          "ring",
          [](nb::handle_t<FrameBuilder> self) {
            const Buffer& ring = nb::cast<FrameBuilder&>(self).ring();
            return nb::cast(nb::ndarray<nb::numpy, std::uint8_t, nb::ndim<1>>(
                reinterpret_cast<std::uint8_t*>(ring.data()), {ring.bytes()}, self));
          },
          nb::sig("def ring(self) -> NDArray[numpy.uint8]"), "Where packets are written, without a copy.")
      .def_prop_ro(
          "reserved_end", [](FrameBuilder& self) { return self.frames().reserved_end(); },
          "There is space for bytes of the stream below this offset; it grows as frames are released.")
      .def_prop_ro(
          "copied", [](FrameBuilder& self) { return self.builder().copied().or_throw("asking what has been copied"); },
          "The greatest ring_end up to which the ring may be overwritten.")
      .def("place", &place, "pieces"_a, "ring_end"_a = 0,
           "Places (ring offset, stream offset, length) for each piece, in any order. Raises UsageError for one that "
           "has no place; those before it are placed.")
      .def(
          "finish", [](FrameBuilder& self, std::uint64_t end) { self.builder().finish(0, end).or_throw("finishing"); },
          "end"_a, "Sets the length of the stream, where its last frame is cut.")
      .def("close", &close_frame, "frame"_a, "packet_bytes"_a, "presence"_a = std::vector<std::uint64_t>{},
           "lengths"_a = std::vector<std::uint16_t>{},
           "Ends this frame, whose packets are at multiples of `packet_bytes`. `presence`: words with a bit for each "
           "packet that was placed; `lengths`: the bytes of each, if some are shorter than that. Bytes that no packet "
           "wrote become zero.")
      .def(
          "__iter__", [](nb::handle self) { return nb::borrow(self); }, nb::sig("def __iter__(self) -> FrameBuilder"))
      .def(
          "__next__",
          [](FrameBuilder& self) {
            auto frame = self.next();
            if (!frame) throw nb::stop_iteration();
            return *std::move(frame);
          },
          "Waits for the copies in flight; stops when no frame is complete.");
}

}  // namespace

void bind_frames(nb::module_& module) {
  bind_frame(module);
  bind_frames_part(module);
  bind_builder(module);
}

}  // namespace headrace::python
