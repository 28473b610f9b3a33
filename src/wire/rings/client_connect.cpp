#include <fmt/format.h>

#include <cerrno>
#include <optional>
#include <string_view>
#include <utility>

#include "headrace/base/error.hpp"
#include "wire/rings/client_state.hpp"

namespace headrace::wire {

namespace {

constexpr int kConnectSeconds = 10;
constexpr std::string_view kScheme = "shm://";

struct RingPlace {
  std::string_view server;
  std::string_view model;
};

RingPlace read_ring_url(std::string_view url) {
  constexpr std::string_view kForm = "shm://NAME or shm://NAME/MODEL";
  if (!url.starts_with(kScheme)) throw UsageError(fmt::format("'{}' is not of the form {}", url, kForm));
  const std::string_view rest = url.substr(kScheme.size());
  const std::size_t slash = rest.find('/');
  const RingPlace place{rest.substr(0, slash), slash == std::string_view::npos ? "" : rest.substr(slash + 1)};
  if (!rings::is_server_name(place.server)) {
    throw UsageError(fmt::format("'{}': a server's name must have {}", url, rings::kServerNames));
  }
  if (slash != std::string_view::npos && place.model.empty()) {
    throw UsageError(fmt::format("'{}' is not of the form {}", url, kForm));
  }
  return place;
}

/// Sends the first message and returns the reply. Throws if there is no valid reply.
rings::Welcome greet(std::string_view url, const FileDescriptor& socket, const rings::Hello& hello,
                     FileDescriptor& memory) {
  const std::string doing = fmt::format("connecting to {}", url);
  // A server without room replies and closes before it reads this message.
  if (!rings::send_message(socket, rings::encode(hello)) && errno != EPIPE && errno != ECONNRESET) throw_errno(doing);
  rings::Received received = rings::receive_message(socket, true);
  if (received.kind == rings::Received::Kind::nothing) {
    throw SystemError(Errc::system, fmt::format("{}: the server did not answer within {} s", doing, kConnectSeconds));
  }
  if (received.kind == rings::Received::Kind::ended) {
    throw SystemError(Errc::system, fmt::format("{}: the server closed the connection", doing));
  }
  std::optional<rings::Welcome> welcome = rings::decode_welcome(received.message);
  if (!welcome) throw DataError(fmt::format("{}: the process that answers is not a Headrace server", doing));
  if (welcome->abi != rings::kRingAbi) {
    throw SystemError(Errc::not_supported,
                      fmt::format("{}: the server runs another version of Headrace (rings {}, here {}); use the same "
                                  "version on both sides",
                                  doing, welcome->abi, rings::kRingAbi));
  }
  memory = std::move(received.attached);
  return *std::move(welcome);
}

}  // namespace

Client::Client(std::string_view url, std::uint32_t slots) : state_(std::make_unique<State>()) {
  const RingPlace place = read_ring_url(url);
  if (slots != 0 && (!is_power_of_two(slots) || slots > rings::kSlotsMost)) {
    throw UsageError(fmt::format("slots must be a power of two, at most {}, not {}", rings::kSlotsMost, slots));
  }
  State& state = *state_;
  state.socket = rings::connect_to(place.server, kConnectSeconds);
  FileDescriptor memory;
  state.welcome = greet(url, state.socket, {.slots = slots, .model = std::string(place.model)}, memory);
  const rings::Welcome& welcome = state.welcome;
  if (!welcome.failure.empty()) {
    const std::string message = fmt::format("connecting to {}: {}", url, welcome.failure);
    if (welcome.code == Errc::not_found || welcome.code == Errc::invalid_argument) {
      throw UsageError(message, welcome.code);
    }
    throw SystemError(welcome.code, message);
  }
  const rings::Layout& layout = welcome.layout;
  constexpr std::uint64_t kLargest = std::uint64_t{1} << 40;  // so that no sum can overflow
  const bool sound = is_power_of_two(layout.slots) && layout.slots <= rings::kSlotsMost && layout.query_bytes > 0 &&
                     layout.query_bytes < kLargest && layout.answer_bytes > 0 && layout.answer_bytes < kLargest;
  if (!sound || !memory.valid() || !rings::is_sealed_memory(memory, layout.bytes())) {
    throw DataError(fmt::format("connecting to {}: the server's shared memory does not match its description", url));
  }
  state.memory = rings::SharedMemory(memory, layout.bytes());
  state.process = rings::process_of(state.socket);
  state.view = rings::View(state.memory.begin(), layout);
  state.own.resize(layout.slots);
}

}  // namespace headrace::wire
