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

/// What client and server say to each other on their socket, a Unix socket of the kind that keeps messages apart: one
/// message each way at the start, and then a byte wherever one of them is to be woken. The end of the socket is the end
/// of the client, or of the server.
namespace headrace::wire::rings {

/// The first message, from the client.
struct Hello {
  std::uint32_t abi = kRingAbi;
  std::uint32_t slots = 0;  ///< 0: as the server likes.
  std::string model{};      ///< Empty: the only one that there is.
};

/// The reply. With it comes the memory, where there is no failure.
struct Welcome {
  std::uint32_t abi = kRingAbi;
  std::string failure{};     ///< Why there is no ring; empty where there is one.
  Errc code = Errc::system;  ///< The same as a code.
  Layout layout{};
  std::string model{};
  std::string version{};
  std::string query_type{};   ///< As Operator::query_type.
  std::string answer_type{};  ///< As Operator::answer_type.
  std::vector<Tensor> inputs{};
};

/// A message that wakes whoever waits on the socket.
inline constexpr char kDoorbell = 'd';
/// The first byte of the server's last message; the rest says why the client is not served any more.
inline constexpr char kGoodbye = 'g';
/// No message is longer.
inline constexpr std::size_t kMessageMost = 64 * kKiB;

[[nodiscard]] std::string encode(const Hello& hello);
[[nodiscard]] std::string encode(const Welcome& welcome);
/// Nothing for a message that is none; one of another version has its `abi` alone.
[[nodiscard]] std::optional<Hello> decode_hello(std::string_view message);
[[nodiscard]] std::optional<Welcome> decode_welcome(std::string_view message);

/// Whether a server may have this name: 1 to 64 letters, digits, '.', '_' and '-'.
[[nodiscard]] bool is_server_name(std::string_view name) noexcept;
/// What is_server_name() allows.
inline constexpr std::string_view kServerNames = "1 to 64 letters, digits, '.', '_' and '-'";

/// A socket that listens under the abstract name of `name` and this user: no file stands for it, so that none is left
/// behind. Does not block. Throws SystemError; where another process has the name, that says so.
[[nodiscard]] FileDescriptor listen_as(std::string_view name);
/// A socket to the server of this name and user. It blocks, `timeout` long at most for each message. Throws SystemError
/// where there is none (Errc::not_found), and where it is another user's (Errc::no_permission).
[[nodiscard]] FileDescriptor connect_to(std::string_view name, int timeout_seconds);
/// The user and the process at the other end, as the system knows them.
struct Peer {
  std::uint32_t user = 0;
  int process = 0;
};
[[nodiscard]] std::optional<Peer> peer_of(const FileDescriptor& socket) noexcept;
/// A descriptor that is readable once the process at the other end has died: a child of it may keep the socket open.
/// None where this process cannot see the other one.
[[nodiscard]] FileDescriptor process_of(const FileDescriptor& socket) noexcept;

/// Sends a message, and a descriptor with it where `attached` is one; false with errno where that failed.
[[nodiscard]] bool send_message(const FileDescriptor& socket, std::string_view message,
                                const FileDescriptor& attached = {}) noexcept;
/// What has come: a message, or the end of the socket.
struct Received {
  enum class Kind : std::uint8_t { message, nothing, ended } kind = Kind::nothing;
  std::string message{};
  FileDescriptor attached{};
};
/// Takes in a message of at most kMessageMost bytes; a longer one is the end, since nobody sends one.
/// @param wait  until one comes, as long as the socket blocks
[[nodiscard]] Received receive_message(const FileDescriptor& socket, bool wait = false);
/// Wakes the other side. Never blocks: where the socket is full, the other side is woken already.
void ring_doorbell(const FileDescriptor& socket) noexcept;

}  // namespace headrace::wire::rings
