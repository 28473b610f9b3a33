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
      .def_ro("peer", &StreamOpened::peer, "Who sends: '10.0.0.1:40000'; empty where that is not known.")
      .def_ro("destination", &StreamOpened::destination,
              "Where it goes to: '10.0.0.2:80'; empty where that is not known.")
      .def("__repr__", [](const StreamOpened& event) {
        return fmt::format("StreamOpened(stream={}, peer='{}')", event.stream, event.peer);
      });
  nb::class_<StreamEnded>(module, "StreamEnded", "No more frames will come of a stream.")
      .def_ro("stream", &StreamEnded::stream)
      .def_ro("peer", &StreamEnded::peer)
      .def_ro("reason", &StreamEnded::reason,
              "finished: the sender said that this was all; reset or timed out: the stream is what came in order until "
              "then; cut: the receiver was stopped, or its source failed; restarted: a sender of datagrams has begun "
              "anew, and what follows is another stream; timed out, of datagrams: it was silent, and gave way.")
      .def_ro("bytes", &StreamEnded::bytes,
              "Of the stream, up to the last that came. Where its last datagram is short and its frame was delivered "
              "before the end was known, that frame has zeros behind.")
      .def("__repr__", [](const StreamEnded& event) {
        return fmt::format("StreamEnded(stream={}, peer='{}', reason='{}', bytes={})", event.stream, event.peer,
                           event.reason, event.bytes);
      });
}

void bind_receivers(nb::module_& module) {
  nb::class_<ReceiverHandle>(module, "Receiver",
                             "Receives on a thread of its own. Iterating waits for frames, of all streams, and ends "
                             "with the source; next() gives what happens to streams as well. A context manager, which "
                             "stops it, and gives its address back. Frames stay valid.")
      .def_prop_ro("address", &ReceiverHandle::address, "To send to, '198.18.0.2:9000'; else what is read.")
      .def_prop_ro("interface", &ReceiverHandle::interface, "The network device in use; empty where there is none.")
      .def("next", &next_any, "timeout"_a.none() = nb::none(),
           nb::sig("def next(self, timeout: float | None = None) -> StreamOpened | Frame | FramePart | StreamEnded | "
                   "None"),
           "What comes next, of any stream. None after `timeout` seconds, or when nothing will come: see ended.")
      .def_prop_ro(
          "ended", [](ReceiverHandle& self) { return self.receiver().ended(); }, "Nothing will come any more.")
      .def(
          "reset", [](ReceiverHandle& self, std::uint32_t stream) { self.receiver().reset(stream); }, "stream"_a,
          "Resets the TCP connection of a stream that is not wanted any more.")
      .def("send", &send, "stream"_a, "data"_a,
           "Says `data` on a stream's TCP connection, behind what was said before: short answers, some 1 KiB a round "
           "trip. Does nothing where the connection is no more. Raises DeviceError (Errc.full) while 1 MiB waits to be "
           "sent; UsageError, as close() and peek(), for datagrams and with resident control.")
      .def(
          "close", [](ReceiverHandle& self, std::uint32_t stream) { self.receiver().close(stream); }, "stream"_a,
          "Nothing more will be said on the connection: FIN follows what waits. What its peer sends still comes.")
      .def(
          "peek",
          [](ReceiverHandle& self, std::uint32_t stream, std::uint64_t offset, std::uint64_t end) {
            self.receiver().peek(stream, offset, end);
          },
          "stream"_a, "offset"_a, "end"_a = 0,
          "Asks for bytes of a stream from `offset` on before their frame is full: next() gives a FramePart, once, as "
          "soon as some have come in order, and all before `end`, unless their frame comes first. Raises UsageError "
          "for "
          "frames that are converted.")
      .def_prop_ro(
          "has_parts", [](ReceiverHandle& self) { return self.receiver().has_parts(); },
          "Whether peek() can be asked for parts of frames.")
      .def("stop", &stop,
           "Resets connections that are open, and gives the socket or network device back: the same address can be "
           "received on again. What is waiting may still be taken.")
      .def("counters", &counters_of, nb::sig("def counters(self) -> dict[str, dict[str, int]]"),
           "What has been seen so far, 50 ms old at most: see docs/ingest.md.")
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
