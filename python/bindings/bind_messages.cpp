#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "arrays.hpp"
#include "bindings.hpp"
#include "frame_handle.hpp"
#include "headrace/base/error.hpp"
#include "headrace/ingest/messages.hpp"
#include "ingest/http_chunks.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace headrace::python {

namespace {

using ingest::LengthPrefix;

/// headrace.MessageReader: its reader is made with the first frame, which knows its ring.
struct MessagesHandle {
  LengthPrefix prefix;
  std::optional<ingest::MessageReader> reader{};
  std::uint32_t stream = 0;
  std::string peer{};
};

struct MessageHandle {
  std::uint32_t stream;
  std::string peer;
  ingest::FramedMessage framed;
};

void add_frame(MessagesHandle& self, const FrameHandle& frame) {
  if (!frame.held) throw UsageError("the frame has been released");
  if (!self.reader) {
    self.reader.emplace(self.prefix, frame.held->ring());
    self.stream = frame.stream;
    self.peer = frame.peer;
  }
  self.reader->add(frame.held);
}

std::optional<MessageHandle> next_message(MessagesHandle& self) {
  if (!self.reader) return {};
  auto framed = self.reader->next();
  if (!framed) return {};
  return MessageHandle{self.stream, self.peer, *std::move(framed)};
}

[[nodiscard]] Array1d<std::uint64_t> array_of_places(const std::vector<std::uint64_t>& places) {
  auto values = make_values<std::uint64_t>(places.size());
  std::ranges::copy(places, values.get());
  return to_numpy(std::move(values), places.size());
}

nb::tuple http_chunks(nb::handle text, std::uint64_t offset) {
  const BytesView view(text, "text");
  const auto bytes = view.bytes();
  const auto found = ingest::find_http_chunks({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, offset);
  return nb::make_tuple(found.bytes, array_of_places(found.begins), array_of_places(found.ends));
}

std::vector<std::tuple<FrameHandle, std::size_t, std::size_t>> parts_of(const MessageHandle& self) {
  std::vector<std::tuple<FrameHandle, std::size_t, std::size_t>> parts;
  for (const ingest::MessagePart& part : self.framed.body) {
    parts.emplace_back(FrameHandle{part.frame, self.stream, self.peer}, part.offset, part.bytes);
  }
  return parts;
}

}  // namespace

void bind_messages(nb::module_& module) {
  nb::class_<MessageHandle>(module, "Message", "A message of a stream. It keeps its frames.")
      .def_ro("stream", &MessageHandle::stream)
      .def_ro("peer", &MessageHandle::peer, "The sender; empty if unknown.")
      .def_prop_ro(
          "begin", [](const MessageHandle& self) { return self.framed.message.begin; }, "Stream offset of its header.")
      .def_prop_ro(
          "bytes", [](const MessageHandle& self) { return self.framed.message.body_bytes; }, "Size of its body.")
      .def_prop_ro("parts", &parts_of,
                   "(frame, offset in the frame, bytes) of its body, in order; not copied. For a frame that was "
                   "incomplete when the message came, the part that had come.")
      .def("__repr__", [](const MessageHandle& self) {
        return fmt::format("Message(stream={}, begin={}, bytes={})", self.stream, self.framed.message.begin,
                           self.framed.message.body_bytes);
      });
  nb::class_<MessagesHandle>(module, "MessageReader",
                             "Splits the frames of one stream into messages that state their length.")
      .def(
          "__init__",
          [](MessagesHandle* self, std::uint32_t width, std::uint32_t offset, std::optional<std::uint32_t> header_bytes,
             bool big_endian, bool counts_header, std::uint64_t body_max) {
            const LengthPrefix prefix{.offset = offset,
                                      .width = width,
                                      .header_bytes = header_bytes.value_or(offset + width),
                                      .big_endian = big_endian,
                                      .counts_header = counts_header,
                                      .body_max = body_max};
            check(prefix);
            new (self) MessagesHandle{.prefix = prefix};
          },
          nb::kw_only(), "width"_a = 4, "offset"_a = 0, "header_bytes"_a.none() = nb::none(), "big_endian"_a = true,
          "counts_header"_a = false, "body_max"_a = std::uint64_t{1} << 30,
          "A header has `header_bytes` (None: up to the end of the length), of which `width` at `offset` state how "
          "many bytes follow or, with `counts_header`, how many there are in all.")
      .def("add", &add_frame, "frame"_a,
           "Adds the stream's next frame, or a part of one; bytes that were added before are skipped. Raises "
           "UsageError if bytes in between are missing.")
      .def(
          "add", [](MessagesHandle& self, const PartHandle& part) { add_frame(self, part.frame); }, "part"_a)
      .def("next", &next_message,
           "The next message, or None until all of it has come. Raises DataError for one longer than `body_max`, or "
           "than all frames of the stream but one.")
      .def_prop_ro(
          "end", [](const MessagesHandle& self) { return self.reader ? self.reader->end() : 0; },
          "Bytes of the stream that have been added.")
      .def_prop_ro(
          "needs",
          [](const MessagesHandle& self) {
            return self.reader ? self.reader->needs() : std::uint64_t{self.prefix.header_bytes};
          },
          "How many of them next() needs before it returns or raises anything more.")
      .def_prop_ro(
          "rest", [](const MessagesHandle& self) { return self.reader ? self.reader->rest() : 0; },
          "Bytes at the end that are not a complete message.");
  module.def("http_chunks", &http_chunks, "text"_a, "offset"_a,
             nb::sig("def http_chunks(text: bytes | bytearray | memoryview, offset: int) -> tuple[int, "
                     "numpy.typing.NDArray[numpy.uint64], numpy.typing.NDArray[numpy.uint64]]"),
             "The chunks at the start of an HTTP body `text`, which begins at byte `offset` of its stream: the bytes "
             "that they take, and where the data of each begins and ends. Stops at the first chunk that is incomplete, "
             "is empty, or has a head of anything but 1 to 4 digits.");
}

}  // namespace headrace::python
