#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "bindings.hpp"
#include "convert.hpp"
#include "frame_handle.hpp"
#include "gil.hpp"
#include "headrace/base/detail/bytes.hpp"
#include "receiver_handle.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace headrace::python {

namespace {

using ingest::Delivery;

struct StreamOpened {
  std::uint32_t stream;
  std::string peer;
  std::string destination;
};

struct StreamEnded {
  std::uint32_t stream;
  std::string peer;
  std::string reason;
  std::uint64_t bytes;
};

nb::object to_python(Delivery delivery) {
  const std::string peer = peer_of(delivery.flow);
  switch (delivery.kind) {
    case Delivery::Kind::opened: return nb::cast(StreamOpened{delivery.stream, peer, destination_of(delivery.flow)});
    case Delivery::Kind::ended:
      return nb::cast(StreamEnded{delivery.stream, peer, std::string(to_string(delivery.end)), delivery.stream_bytes});
    case Delivery::Kind::part:
      return nb::cast(PartHandle{FrameHandle{std::move(delivery.frame), delivery.stream, peer}});
    case Delivery::Kind::frame: break;
  }
  return nb::cast(FrameHandle{std::move(delivery.frame), delivery.stream, peer});
}

/// The next delivery, or nothing if none comes by the deadline or the stream has ended. Checks for signals twenty times
/// a second.
std::optional<Delivery> wait_next(ReceiverHandle& self, Time deadline) {
  constexpr Duration kLook = std::chrono::milliseconds(50);
  while (true) {
    std::optional<Delivery> delivery;
    bool over = false;
    {
      const GilRelease released;
      const Time now = SteadyClock::now();
      delivery = self.receiver().next(std::clamp(deadline - now, Duration{}, kLook));
      over = !delivery && (SteadyClock::now() >= deadline || self.receiver().ended());
    }
    if (delivery || over) return delivery;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
  }
}

nb::object next_frame(ReceiverHandle& self) {
  while (auto delivery = wait_next(self, Time::max())) {
    if (delivery->kind == Delivery::Kind::frame) return to_python(*std::move(delivery));
  }
  throw nb::stop_iteration();
}

nb::object next_any(ReceiverHandle& self, std::optional<double> timeout) {
  auto delivery = wait_next(self, to_deadline(timeout));
  return delivery ? to_python(*std::move(delivery)) : nb::none();
}

void send(ReceiverHandle& self, std::uint32_t stream, const nb::bytes& data) {
  const std::span bytes(static_cast<const std::byte*>(data.data()), data.size());
  const Status sent = self.receiver().send(stream, bytes);
  if (!sent && sent.error().code == Errc::full) {
    throw DeviceError(Errc::full,
                      fmt::format("answering stream {}: more than {} of answers would be waiting to be sent", stream,
                                  format_bytes(ingest::Receiver::kAnswerBytesMax)));
  }
  sent.or_throw("answering");
}

void stop(ReceiverHandle& self) {
  const GilRelease released;
  self.stop();
}

void bind_events(nb::module_& module) {
  nb::class_<StreamOpened>(module, "StreamOpened", "A sender has connected, or its first datagram has come.")
      .def_ro("stream", &StreamOpened::stream, "Streams count from 0.")
      .def_ro("peer", &StreamOpened::peer, "The sender, '10.0.0.1:40000'; empty if unknown.")
      .def_ro("destination", &StreamOpened::destination, "The destination, '10.0.0.2:80'; empty if unknown.")
      .def("__repr__", [](const StreamOpened& event) {
        return fmt::format("StreamOpened(stream={}, peer='{}')", event.stream, event.peer);
      });
  nb::class_<StreamEnded>(module, "StreamEnded", "No more frames will come of a stream.")
      .def_ro("stream", &StreamEnded::stream)
      .def_ro("peer", &StreamEnded::peer)
      .def_ro("reason", &StreamEnded::reason,
              "finished: the sender said that this was all; reset or timed out: the stream is what came in order until "
              "then; cut: the receiver was stopped, or its source failed; restarted: a sender of datagrams began "
              "again, and another stream follows; timed out, of datagrams: it was silent, and was replaced.")
      .def_ro("bytes", &StreamEnded::bytes,
              "Bytes of the stream, up to the last that came. If its last datagram is short and its frame was "
              "delivered before the end was known, that frame is padded with zeros.")
      .def("__repr__", [](const StreamEnded& event) {
        return fmt::format("StreamEnded(stream={}, peer='{}', reason='{}', bytes={})", event.stream, event.peer,
                           event.reason, event.bytes);
      });
}

void bind_receivers(nb::module_& module) {
  nb::class_<ReceiverHandle>(
      module, "Receiver",
      "Receives on its own thread. Iterating waits for frames of all streams and ends with the source; next() also "
      "returns stream events. As a context manager, it stops and releases its address at the end. Frames stay valid.")
      .def_prop_ro("address", &ReceiverHandle::address,
                   "The address to send to, '198.18.0.2:9000', or the name of the source.")
      .def_prop_ro("interface", &ReceiverHandle::interface, "The network device in use; empty if there is none.")
      .def("next", &next_any, "timeout"_a.none() = nb::none(),
           nb::sig("def next(self, timeout: float | None = None) -> StreamOpened | Frame | FramePart | StreamEnded | "
                   "None"),
           "The next event of any stream. None after `timeout` seconds, or once nothing will come: see ended.")
      .def_prop_ro(
          "ended", [](ReceiverHandle& self) { return self.receiver().ended(); }, "Whether nothing more will come.")
      .def(
          "reset", [](ReceiverHandle& self, std::uint32_t stream) { self.receiver().reset(stream); }, "stream"_a,
          "Resets the TCP connection of a stream that is no longer wanted.")
      .def("send", &send, "stream"_a, "data"_a,
           "Sends `data` on a stream's TCP connection, after what was sent before: short answers, about 1 KiB a round "
           "trip. Does nothing if the connection is closed. Raises DeviceError (Errc.full) while 1 MiB waits to be "
           "sent, and UsageError, like close() and peek(), for datagrams and with resident control.")
      .def(
          "close", [](ReceiverHandle& self, std::uint32_t stream) { self.receiver().close(stream); }, "stream"_a,
          "Ends sending on the connection: FIN follows the data that waits. Data from its peer still comes.")
      .def(
          "peek",
          [](ReceiverHandle& self, std::uint32_t stream, std::uint64_t offset, std::uint64_t end) {
            self.receiver().peek(stream, offset, end);
          },
          "stream"_a, "offset"_a, "end"_a = 0,
          "Requests bytes of a stream from `offset` on before their frame is full: next() returns a FramePart, once, "
          "as soon as some have come in order, and all before `end`, unless their frame comes first. Raises UsageError "
          "for frames that are converted.")
      .def_prop_ro(
          "has_parts", [](ReceiverHandle& self) { return self.receiver().has_parts(); },
          "Whether peek() can request parts of frames.")
      .def("stop", &stop,
           "Resets open connections, and releases the socket or network device: the same address can be received on "
           "again. Waiting events can still be taken.")
      .def("counters", &counters_of, nb::sig("def counters(self) -> dict[str, dict[str, int]]"),
           "Counters, at most 50 ms old: see docs/ingest.md.")
      .def(
          "__iter__", [](nb::handle self) { return nb::borrow(self); }, nb::sig("def __iter__(self) -> Receiver"))
      .def("__next__", &next_frame, nb::sig("def __next__(self) -> Frame"))
      .def(
          "__enter__", [](nb::handle self) { return nb::borrow(self); }, nb::sig("def __enter__(self) -> Receiver"))
      .def(
          "__exit__", [](ReceiverHandle& self, const nb::args&) { stop(self); },
          nb::sig("def __exit__(self, *args: object) -> None"));
}

}  // namespace

void bind_receiver(nb::module_& module) {
  bind_events(module);
  bind_receivers(module);
}

}  // namespace headrace::python
