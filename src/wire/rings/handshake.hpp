#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file_descriptor.hpp"
#include "headrace/base/error.hpp"
#include "headrace/wire/detail/tensor.hpp"
#include "wire/rings/layout.hpp"

/// Messages between client and server over a Unix socket that preserves message boundaries: one message each way at the
/// start, and then one byte for each wake-up. If one side closes the socket, that side has ended.
namespace headrace::wire::rings {

/// The first message, from the client.
struct Hello {
  std::uint32_t abi = kRingAbi;
  std::uint32_t slots = 0;  ///< 0: the server chooses.
  std::string model{};      ///< Empty: the server's only model.
};

/// The reply. Unless there is a failure, the memory's descriptor comes with it.
struct Welcome {
  std::uint32_t abi = kRingAbi;
  std::string failure{};     ///< Why there is no ring; empty on success.
  Errc code = Errc::system;  ///< The failure as a code.
  Layout layout{};
  std::string model{};
  std::string version{};
  std::string query_type{};   ///< As Operator::query_type.
  std::string answer_type{};  ///< As Operator::answer_type.
  std::vector<Tensor> inputs{};
};

/// A message that wakes the other side.
inline constexpr char kDoorbell = 'd';
/// The first byte of the server's last message; the rest tells why the server no longer serves the client.
inline constexpr char kGoodbye = 'g';
/// Longest message.
inline constexpr std::size_t kMessageMost = 64 * kKiB;

[[nodiscard]] std::string encode(const Hello& hello);
[[nodiscard]] std::string encode(const Welcome& welcome);
/// Empty for an invalid message. For a message of another version, only `abi` is set.
[[nodiscard]] std::optional<Hello> decode_hello(std::string_view message);
[[nodiscard]] std::optional<Welcome> decode_welcome(std::string_view message);

/// Whether a server may have this name: 1 to 64 letters, digits, '.', '_' and '-'.
[[nodiscard]] bool is_server_name(std::string_view name) noexcept;
/// What is_server_name() allows.
inline constexpr std::string_view kServerNames = "1 to 64 letters, digits, '.', '_' and '-'";

/// A non-blocking socket that listens under an abstract name made of this user and `name`, so that no file is left
/// behind. Throws SystemError, which says so if another process uses the name.
[[nodiscard]] FileDescriptor listen_as(std::string_view name);
/// A blocking socket to this user's server of that name, with a timeout for each message. Throws SystemError if there
/// is no such server (Errc::not_found), or if it belongs to another user (Errc::no_permission).
[[nodiscard]] FileDescriptor connect_to(std::string_view name, int timeout_seconds);
/// The user and process at the other end, according to the system.
struct Peer {
  std::uint32_t user = 0;
  int process = 0;
};
[[nodiscard]] std::optional<Peer> peer_of(const FileDescriptor& socket) noexcept;
/// A descriptor that becomes readable when the process at the other end dies, because a child of it may keep the socket
/// open. Invalid if this process cannot see the other one.
[[nodiscard]] FileDescriptor process_of(const FileDescriptor& socket) noexcept;

/// Sends a message, and a descriptor with it if `attached` is valid. Returns false and sets errno on failure.
[[nodiscard]] bool send_message(const FileDescriptor& socket, std::string_view message,
                                const FileDescriptor& attached = {}) noexcept;
/// A received message, or the end of the socket.
struct Received {
  enum class Kind : std::uint8_t { message, nothing, ended } kind = Kind::nothing;
  std::string message{};
  FileDescriptor attached{};
};
/// Receives a message of at most kMessageMost bytes. Treats a longer one as the end, because neither side sends one.
/// @param wait  wait for a message, as long as the socket's timeout allows
[[nodiscard]] Received receive_message(const FileDescriptor& socket, bool wait = false);
/// Wakes the other side. Never blocks: if the socket is full, a wake-up is pending already.
void ring_doorbell(const FileDescriptor& socket) noexcept;

}  // namespace headrace::wire::rings
