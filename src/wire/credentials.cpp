#include "wire/credentials.hpp"

#include "headrace/base/error.hpp"
#include "wire/listener.hpp"
#include "wire/request_error.hpp"

namespace headrace::wire {

namespace {

void require_together(const ServerConfig& config) {
  if (config.tls_certificate.empty() != config.tls_key.empty()) {
    throw UsageError("server: TLS needs both a certificate and its key");
  }
  const bool has_tls = !config.tls_certificate.empty();
  if (!has_tls && !config.tls_clients.empty()) {
    throw UsageError("server: client certificates need TLS; give the server's certificate and key, too");
  }
  if (has_tls || config.token_file.empty() || config.plain_tokens || is_loopback(config.address)) return;
  throw UsageError(
      "server: without TLS, anyone on the network could read the tokens; give a certificate and its key "
      "(tls_certificate, tls_key), or set plain_tokens if a proxy in front of the server speaks TLS");
}

}  // namespace

std::string_view alpn_of(Protocol protocol) noexcept { return protocol == Protocol::grpc ? "h2" : "http/1.1"; }

Credentials::Credentials(const ServerConfig& config) {
  require_together(config);
  if (!config.tls_certificate.empty()) {
    const TlsFiles files{
        .certificate = config.tls_certificate, .key = config.tls_key, .authorities = config.tls_clients};
    for (std::size_t i = 0; i < kProtocols; ++i) {
      tls[i] = std::make_shared<const TlsContext>(TlsRole::server, files, alpn_of(static_cast<Protocol>(i)));
    }
  }
  if (!config.token_file.empty()) tokens = std::make_unique<const Tokens>(config.token_file);
}

void Credentials::require_token(std::optional<std::string_view> authorization) const {
  if (tokens == nullptr) return;
  switch (tokens->check(authorization)) {
    case Admission::granted: return;
    case Admission::missing:
      throw RequestError(kUnauthorized, "this server requires a token; send the header 'Authorization: Bearer TOKEN'");
    case Admission::wrong: throw RequestError(kUnauthorized, "this server does not accept the token");
  }
}

}  // namespace headrace::wire
