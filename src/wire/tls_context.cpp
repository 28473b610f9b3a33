#include <fcntl.h>
#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include <ctime>
#include <mutex>
#include <new>

#include "base/file_descriptor.hpp"
#include "headrace/base/error.hpp"
#include "wire/tls.hpp"

namespace headrace::wire {

namespace {

/// TLS 1.2 with forward secrecy and authenticated encryption; HTTP/2 allows no other ciphers (RFC 9113, appendix A).
constexpr const char* kCiphers12 = "ECDHE+AESGCM:ECDHE+CHACHA20";

/// Must be the first use of OpenSSL. Disables OpenSSL's clean-up at exit, because a server's threads may outlive main()
/// and still use its data.
void initialise_openssl() {
  static std::once_flag once;
  std::call_once(once, [] { OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, nullptr); });
}

/// The first reason that OpenSSL gives.
std::string reason() {
  const char* const text = ERR_reason_error_string(ERR_get_error());
  ERR_clear_error();
  return text == nullptr ? "unknown reason" : text;
}

void require_readable(const std::string& file) {
  const FileDescriptor opened(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!opened.valid()) throw_errno(fmt::format("reading {}", file));
}

[[noreturn]] void refuse_file(const std::string& file, std::string_view wanted) {
  throw UsageError(fmt::format("{}: {}: {}", file, wanted, reason()));
}

/// Without this callback, OpenSSL would ask for a password at the terminal.
int no_password(char* /*buffer*/, int /*size*/, int /*writes*/, void* /*user*/) { return -1; }

int select_protocol(SSL* /*session*/, const unsigned char** out, unsigned char* out_bytes, const unsigned char* offered,
                    unsigned int offered_bytes, void* user) {
  const std::string& ours = static_cast<const TlsContext*>(user)->offer();
  unsigned char* chosen = nullptr;
  const int found = SSL_select_next_proto(&chosen, out_bytes, reinterpret_cast<const unsigned char*>(ours.data()),
                                          static_cast<unsigned int>(ours.size()), offered, offered_bytes);
  if (found != OPENSSL_NPN_NEGOTIATED) return SSL_TLSEXT_ERR_ALERT_FATAL;  // RFC 7301 3.2
  *out = chosen;
  return SSL_TLSEXT_ERR_OK;
}

std::int64_t seconds_since_1970(const ASN1_TIME* time) {
  std::tm parts{};
  return ASN1_TIME_to_tm(time, &parts) == 1 ? ::timegm(&parts) : 0;
}

}  // namespace

TlsContext::TlsContext(TlsRole role, const TlsFiles& files, std::string_view protocol)
    : offer_(static_cast<char>(protocol.size()) + std::string(protocol)) {
  initialise_openssl();
  context_ = SSL_CTX_new(role == TlsRole::server ? TLS_server_method() : TLS_client_method());
  if (context_ == nullptr) throw std::bad_alloc();
  try {
    load(role, files);
  } catch (...) {
    SSL_CTX_free(context_);
    throw;
  }
}

TlsContext::~TlsContext() { SSL_CTX_free(context_); }

void TlsContext::load(TlsRole role, const TlsFiles& files) {
  ERR_clear_error();
  SSL_CTX_set_min_proto_version(context_, TLS1_2_VERSION);
  SSL_CTX_set_options(context_, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION);
  SSL_CTX_set_cipher_list(context_, kCiphers12);
  // Frees the buffers of idle connections, and allows write buffers to move between calls.
  SSL_CTX_set_mode(context_,
                   SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_read_ahead(context_, 1);                           // reads a record in one system call
  SSL_CTX_set_session_cache_mode(context_, SSL_SESS_CACHE_OFF);  // clients keep their sessions, in tickets
  SSL_CTX_set_session_id_context(context_, reinterpret_cast<const unsigned char*>(offer_.data()),
                                 static_cast<unsigned int>(offer_.size()));
  SSL_CTX_set_default_passwd_cb(context_, no_password);
  if (!files.certificate.empty()) {
    require_readable(files.certificate);
    if (SSL_CTX_use_certificate_chain_file(context_, files.certificate.c_str()) != 1) {
      refuse_file(files.certificate, "not a PEM certificate");
    }
    certificate_ends_ = seconds_since_1970(X509_get0_notAfter(SSL_CTX_get0_certificate(context_)));
    require_readable(files.key);
    if (SSL_CTX_use_PrivateKey_file(context_, files.key.c_str(), SSL_FILETYPE_PEM) != 1) {
      refuse_file(files.key, "not an unencrypted PEM key for this certificate");
    }
    if (SSL_CTX_check_private_key(context_) != 1) refuse_file(files.key, "not the key of the certificate");
  }
  if (!files.authorities.empty()) {
    require_readable(files.authorities);
    if (SSL_CTX_load_verify_file(context_, files.authorities.c_str()) != 1) {
      refuse_file(files.authorities, "no PEM certificates");
    }
  }
  if (role == TlsRole::client) {
    if (files.authorities.empty()) SSL_CTX_set_default_verify_paths(context_);
    SSL_CTX_set_verify(context_, SSL_VERIFY_PEER, nullptr);
    return;
  }
  SSL_CTX_set_alpn_select_cb(context_, select_protocol, this);
  if (files.authorities.empty()) return;
  SSL_CTX_set_client_CA_list(context_, SSL_load_client_CA_file(files.authorities.c_str()));
  SSL_CTX_set_verify(context_, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
}

}  // namespace headrace::wire
