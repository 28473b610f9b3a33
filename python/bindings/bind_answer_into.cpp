#include <fmt/format.h>

#include <cstdint>
#include <span>

#include "bindings.hpp"
#include "device/backend.hpp"
#include "gil.hpp"
#include "headrace/serve/engine.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace headrace::python {

namespace {

constexpr const char* kAnswering = "answering queries in device memory";

/// Memory of an array, which the caller keeps alive.
template <class Byte>
[[nodiscard]] std::span<Byte> bytes_at(std::uintptr_t address, std::size_t bytes) noexcept {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): NumPy and CUDA's libraries give addresses as numbers
  return {reinterpret_cast<Byte*>(address), bytes};
}

void answer_into(serve::Engine& engine, std::uintptr_t queries, std::size_t query_bytes, std::uintptr_t answers,
                 std::size_t answer_bytes, std::uintptr_t stream) {
  const auto from = bytes_at<const std::byte>(queries, query_bytes);
  const auto to = bytes_at<std::byte>(answers, answer_bytes);
  const Device device = engine.device();
  const GilRelease released;
  if (device.kind() == DeviceKind::cpu) {
    // Arrays on the host have no stream, so the answers must be there when this returns.
    const Stream own(device, {.run_in_waiter = true});
    engine.answer_into(own, from, to).or_throw(kAnswering);
    own.wait().or_throw(kAnswering);
    return;
  }
  const auto borrowed = device.backend().borrow_stream(stream);
  if (!borrowed && borrowed.error().code == Errc::invalid_argument) {
    throw UsageError(fmt::format("the stream does not belong to {}", device.name()));
  }
  if (!borrowed) throw_error("borrowing a stream", borrowed.error());
  engine.answer_into(StreamRef(**borrowed), from, to).or_throw(kAnswering);
}

}  // namespace

void bind_answer_into(nb::module_& module) {
  module.def("answer_into", &answer_into, "engine"_a, "queries"_a, "query_bytes"_a, "answers"_a, "answer_bytes"_a,
             "stream"_a,
             "Answers queries at an address of the engine's device, in the order of that stream, whose handle is given "
             "(0: the default one). On a CPU device it waits for the answers. headrace.serve.answer_into() takes "
             "arrays.");
}

}  // namespace headrace::python
