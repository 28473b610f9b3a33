#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

struct ssl_ctx_st;
struct ssl_st;

/// TLS with OpenSSL for non-blocking sockets. In builds without OpenSSL, no TlsContext can be made.
namespace headrace::wire {

/// Names of PEM files; empty for none.
struct TlsFiles {
  std::string certificate;    ///< This side's certificate, followed by the chain to its authority.
  std::string key;            ///< The certificate's key, unencrypted.
  std::string authorities{};  ///< Authorities that may sign the other side's certificate.
};

enum class TlsRole : std::uint8_t { server, client };

/// The TLS configuration that all connections of a port share. Immutable; any thread.
class TlsContext {
 public:
  /// A server requires a client certificate if authorities are given. A client always checks the server's certificate,
  /// against the system's authorities if none are given.
  /// @param protocol  ALPN name of the protocol spoken over the connections
  /// Throws SystemError for a file that cannot be read, UsageError for a file with unusable content, Exception
  /// (Errc::not_supported) in a build without OpenSSL.
  TlsContext(TlsRole role, const TlsFiles& files, std::string_view protocol);
  ~TlsContext();
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;

  /// Expiry of the certificate, in seconds since 1970; 0 without a certificate.
  [[nodiscard]] std::int64_t certificate_ends() const noexcept { return certificate_ends_; }
  [[nodiscard]] ssl_ctx_st* get() const noexcept { return context_; }
  /// The protocol in the format of ALPN: preceded by its length.
  [[nodiscard]] const std::string& offer() const noexcept { return offer_; }

 private:
  void load(TlsRole role, const TlsFiles& files);

  ssl_ctx_st* context_ = nullptr;
  std::string offer_;
  std::int64_t certificate_ends_ = 0;
};

/// The result of a step of a TlsSession.
enum class TlsStep : std::uint8_t {
  done,
  wants_bytes,  ///< Continue once the socket is readable.
  wants_room,   ///< Continue once the socket is writable.
  ended,        ///< The other side sends no more.
  failed,       ///< The connection cannot go on; the other side has been told why if possible.
};

/// One connection. Used by one thread.
class TlsSession {
 public:
  /// @param socket  non-blocking; outlives the session
  /// @param host    for clients: the name or address that the server's certificate must be valid for
  /// Throws std::bad_alloc.
  TlsSession(std::shared_ptr<const TlsContext> context, TlsRole role, int socket, const std::string& host = {});
  ~TlsSession();
  TlsSession(const TlsSession&) = delete;
  TlsSession& operator=(const TlsSession&) = delete;

  /// Continues the handshake. No other method may be called before it is done.
  [[nodiscard]] TlsStep greet() noexcept;
  /// Reads received bytes. @param count  receives their number if the step is done
  [[nodiscard]] TlsStep read(std::span<char> into, std::size_t& count) noexcept;
  /// Writes some of `bytes`. After wants_room, the next call must start with the same bytes, at any address.
  [[nodiscard]] TlsStep write(std::string_view bytes, std::size_t& count) noexcept;
  /// Tells the other side that this side sends no more.
  [[nodiscard]] TlsStep finish() noexcept;
  /// Why the handshake or a later step failed: a static text of OpenSSL, nothing from the other side.
  [[nodiscard]] const char* why() const noexcept { return why_; }
  /// Whether the handshake failed because this side does not accept the other side's certificate.
  [[nodiscard]] bool distrusts() const noexcept { return distrusts_; }
  /// Whether the handshake failed because the other side speaks HTTP without TLS.
  [[nodiscard]] bool met_plain_http() const noexcept { return met_plain_http_; }
  /// Whether the handshake failed because the other side left without sending a byte, as port scans and probes do.
  [[nodiscard]] bool met_nobody() const noexcept { return met_nobody_; }

 private:
  [[nodiscard]] TlsStep step_of(int result) noexcept;

  std::shared_ptr<const TlsContext> context_;  ///< The handshake gets the protocol from it.
  ssl_st* session_ = nullptr;
  const char* why_ = "";
  bool distrusts_ = false;
  bool met_plain_http_ = false;
  bool met_nobody_ = false;
  bool failed_ = false;
};

}  // namespace headrace::wire
