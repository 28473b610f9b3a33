#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

struct ssl_ctx_st;
struct ssl_st;

/// TLS by OpenSSL, for sockets that do not block. Builds without OpenSSL make no TlsContext.
namespace headrace::wire {

/// Names of PEM files; empty where there is none.
struct TlsFiles {
  std::string certificate;    ///< This side's, with those that lead to its authority behind it.
  std::string key;            ///< That certificate's, not encrypted.
  std::string authorities{};  ///< Those that may have signed the other side's certificate.
};

enum class TlsRole : std::uint8_t { server, client };

/// What the connections of a port have in common. It never changes; any thread.
class TlsContext {
 public:
  /// A server asks for a certificate where there are authorities. A client always checks the server's: by the system's
  /// authorities where none are given.
  /// @param protocol  that is spoken over the connections, as ALPN names it
  /// Throws SystemError for a file that cannot be read, UsageError for one whose content will not do, Exception
  /// (Errc::not_supported) in a build without OpenSSL.
  TlsContext(TlsRole role, const TlsFiles& files, std::string_view protocol);
  ~TlsContext();
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;

  /// When the certificate ends, in seconds since 1970; 0 where there is none.
  [[nodiscard]] std::int64_t certificate_ends() const noexcept { return certificate_ends_; }
  [[nodiscard]] ssl_ctx_st* get() const noexcept { return context_; }
  /// The protocol as ALPN sends it: behind its length.
  [[nodiscard]] const std::string& offer() const noexcept { return offer_; }

 private:
  void load(TlsRole role, const TlsFiles& files);

  ssl_ctx_st* context_ = nullptr;
  std::string offer_;
  std::int64_t certificate_ends_ = 0;
};

/// How far a step of a TlsSession has come.
enum class TlsStep : std::uint8_t {
  done,
  wants_bytes,  ///< Goes on once the socket has bytes.
  wants_room,   ///< Goes on once the socket has room.
  ended,        ///< The other side sends no more.
  failed,       ///< The connection cannot go on; the other side has been told why where that is possible.
};

/// One connection. Used by one thread.
class TlsSession {
 public:
  /// @param socket  does not block; outlives the session
  /// @param host    for clients: the name or address that the server's certificate is to be for
  /// Throws std::bad_alloc.
  TlsSession(std::shared_ptr<const TlsContext> context, TlsRole role, int socket, const std::string& host = {});
  ~TlsSession();
  TlsSession(const TlsSession&) = delete;
  TlsSession& operator=(const TlsSession&) = delete;

  /// Goes on with the handshake, which is done once. Nothing else is called before.
  [[nodiscard]] TlsStep greet() noexcept;
  /// Reads what has come. @param count  gets how much, where it is done
  [[nodiscard]] TlsStep read(std::span<char> into, std::size_t& count) noexcept;
  /// Takes some of `bytes`. After wants_room the next call has to begin with the same bytes, wherever they lie.
  [[nodiscard]] TlsStep write(std::string_view bytes, std::size_t& count) noexcept;
  /// Tells the other side that no more is sent.
  [[nodiscard]] TlsStep finish() noexcept;
  /// Why the handshake failed, or what came after it: words of OpenSSL, none of the other side. They never end.
  [[nodiscard]] const char* why() const noexcept { return why_; }
  /// Whether it failed since this side does not accept the other one's certificate.
  [[nodiscard]] bool distrusts() const noexcept { return distrusts_; }
  /// Whether it failed since the other side speaks HTTP without TLS.
  [[nodiscard]] bool met_plain_http() const noexcept { return met_plain_http_; }
  /// Whether it failed since the other side left before it had said anything, as those do that try whether a port is
  /// open.
  [[nodiscard]] bool met_nobody() const noexcept { return met_nobody_; }

 private:
  [[nodiscard]] TlsStep step_of(int result) noexcept;

  std::shared_ptr<const TlsContext> context_;  ///< The handshake asks it what is spoken.
  ssl_st* session_ = nullptr;
  const char* why_ = "";
  bool distrusts_ = false;
  bool met_plain_http_ = false;
  bool met_nobody_ = false;
  bool failed_ = false;
};

}  // namespace headrace::wire
