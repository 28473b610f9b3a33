#include "wire/client/endpoint.hpp"

#include "wire/client/protocols.hpp"
#include "wire/credentials.hpp"
#include "wire/tokens.hpp"

namespace headrace::wire::client {

void secure(Endpoint& endpoint, const Security& security) {
  if (security.tls) {
    endpoint.tls = std::make_shared<const TlsContext>(TlsRole::client, security.files, alpn_of(endpoint.protocol));
    endpoint.server_name = security.server_name;
  }
  if (!security.token_file.empty()) endpoint.token = first_token(security.token_file);
}

std::string authorization_of(const Endpoint& endpoint) {
  return endpoint.token.empty() ? std::string() : "Bearer " + endpoint.token;
}

}  // namespace headrace::wire::client
