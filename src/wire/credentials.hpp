#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string_view>

#include "headrace/wire/server.hpp"
#include "wire/counters.hpp"
#include "wire/tls.hpp"
#include "wire/tokens.hpp"

namespace headrace::wire {

/// The ALPN name of a port's protocol.
[[nodiscard]] std::string_view alpn_of(Protocol protocol) noexcept;

/// The content of a server's certificate and token files when they were last read. Immutable; any thread.
struct Credentials {
  /// Reads the files that `config` names. Throws as TlsContext and Tokens do, and UsageError if one of a set of files
  /// is missing, or if the files must not be used with the configured address.
  explicit Credentials(const ServerConfig& config);

  [[nodiscard]] const std::shared_ptr<const TlsContext>& tls_of(Protocol protocol) const noexcept {
    return tls[static_cast<std::size_t>(protocol)];
  }
  /// Throws RequestError (401) if a request has no token that the server accepts.
  /// @param authorization  the value of its header Authorization
  void require_token(std::optional<std::string_view> authorization) const;

  std::array<std::shared_ptr<const TlsContext>, kProtocols> tls;  ///< Null without TLS.
  std::unique_ptr<const Tokens> tokens;                           ///< Null if requests need no token.
};

}  // namespace headrace::wire
