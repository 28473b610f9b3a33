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

/// What ALPN calls the protocol of a port.
[[nodiscard]] std::string_view alpn_of(Protocol protocol) noexcept;

/// What the files of a server's certificates and tokens had when they were read last. It never changes; any thread.
struct Credentials {
  /// Reads the files that `config` names. Throws as TlsContext and Tokens do, and UsageError for files that go together
  /// and are not all given, or that are not to be used at the configured address.
  explicit Credentials(const ServerConfig& config);

  [[nodiscard]] const std::shared_ptr<const TlsContext>& tls_of(Protocol protocol) const noexcept {
    return tls[static_cast<std::size_t>(protocol)];
  }
  /// Throws RequestError (401) where a request has no token that the server takes.
  /// @param authorization  the value of its header Authorization
  void require_token(std::optional<std::string_view> authorization) const;

  std::array<std::shared_ptr<const TlsContext>, kProtocols> tls;  ///< Null without TLS.
  std::unique_ptr<const Tokens> tokens;                           ///< Null where requests need none.
};

}  // namespace headrace::wire
