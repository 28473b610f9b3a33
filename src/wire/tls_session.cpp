#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include <cerrno>
#include <new>
#include <utility>

#include "wire/tls.hpp"

namespace headrace::wire {

namespace {

/// Connects OpenSSL to the socket. OpenSSL's own BIO would raise SIGPIPE if the other side has left.
int transfer_result(BIO* bio, ssize_t count, int retry) {
  BIO_clear_retry_flags(bio);
  if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
    BIO_set_flags(bio, retry | BIO_FLAGS_SHOULD_RETRY);
  return static_cast<int>(count);
}

int socket_of(BIO* bio) { return static_cast<int>(reinterpret_cast<std::intptr_t>(BIO_get_data(bio))); }

int socket_write(BIO* bio, const char* data, int size) {
  return transfer_result(bio, ::send(socket_of(bio), data, static_cast<std::size_t>(size), MSG_NOSIGNAL),
                         BIO_FLAGS_WRITE);
}

int socket_read(BIO* bio, char* data, int size) {
  return transfer_result(bio, ::recv(socket_of(bio), data, static_cast<std::size_t>(size), 0), BIO_FLAGS_READ);
}

long socket_control(BIO* /*bio*/, int command, long /*number*/, void* /*pointer*/) {
  return command == BIO_CTRL_FLUSH ? 1 : 0;
}

struct FreeMethod {
  void operator()(BIO_METHOD* method) const noexcept { BIO_meth_free(method); }
};

const BIO_METHOD* socket_method() {
  static const std::unique_ptr<BIO_METHOD, FreeMethod> method = [] {
    std::unique_ptr<BIO_METHOD, FreeMethod> made(BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "socket"));
    if (made == nullptr) throw std::bad_alloc();
    BIO_meth_set_write(made.get(), socket_write);
    BIO_meth_set_read(made.get(), socket_read);
    BIO_meth_set_ctrl(made.get(), socket_control);
    return made;
  }();
  return method.get();
}

/// Why a handshake failed, from the first error that OpenSSL has noted.
const char* reason_of_failure(const SSL* session, unsigned long error) {
  const long verified = SSL_get_verify_result(session);
  if (verified != X509_V_OK) return X509_verify_cert_error_string(verified);
  const bool is_plain = ERR_GET_LIB(error) == ERR_LIB_SSL && (ERR_GET_REASON(error) == SSL_R_WRONG_VERSION_NUMBER ||
                                                              ERR_GET_REASON(error) == SSL_R_PACKET_LENGTH_TOO_LONG);
  if (is_plain && SSL_is_server(session) == 0) return "the server does not speak TLS on this port";
  const char* const reason = ERR_reason_error_string(error);
  return reason == nullptr ? "the connection ended" : reason;
}

}  // namespace

TlsSession::TlsSession(std::shared_ptr<const TlsContext> context, TlsRole role, int socket, const std::string& host)
    : context_(std::move(context)), session_(SSL_new(context_->get())) {
  if (session_ == nullptr) throw std::bad_alloc();
  BIO* const bio = BIO_new(socket_method());
  if (bio == nullptr) {
    SSL_free(session_);
    throw std::bad_alloc();
  }
  BIO_set_data(bio, reinterpret_cast<void*>(static_cast<std::intptr_t>(socket)));  // NOLINT(performance-no-int-to-ptr)
  BIO_set_init(bio, 1);
  SSL_set_bio(session_, bio, bio);
  if (role == TlsRole::server) {
    SSL_set_accept_state(session_);
    return;
  }
  SSL_set_connect_state(session_);
  const std::string& offer = context_->offer();
  SSL_set_alpn_protos(session_, reinterpret_cast<const unsigned char*>(offer.data()),
                      static_cast<unsigned int>(offer.size()));
  if (X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(session_), host.c_str()) == 1) return;
  ERR_clear_error();
  SSL_set_tlsext_host_name(session_, host.c_str());
  SSL_set1_host(session_, host.c_str());
}

TlsSession::~TlsSession() { SSL_free(session_); }

TlsStep TlsSession::step_of(int result) noexcept {
  switch (SSL_get_error(session_, result)) {
    case SSL_ERROR_NONE: return TlsStep::done;
    case SSL_ERROR_WANT_READ: return TlsStep::wants_bytes;
    case SSL_ERROR_WANT_WRITE: return TlsStep::wants_room;
    case SSL_ERROR_ZERO_RETURN: return TlsStep::ended;
    default: break;
  }
  failed_ = true;
  why_ = reason_of_failure(session_, ERR_peek_error());
  return TlsStep::failed;
}

// OpenSSL's error queue belongs to the thread and so to all of its connections. Each call must find it empty.

TlsStep TlsSession::greet() noexcept {
  ERR_clear_error();
  const TlsStep step = step_of(SSL_do_handshake(session_));
  if (step != TlsStep::failed && step != TlsStep::ended) return step;
  const unsigned long error = ERR_peek_error();
  met_plain_http_ = ERR_GET_LIB(error) == ERR_LIB_SSL && ERR_GET_REASON(error) == SSL_R_HTTP_REQUEST;
  met_nobody_ = error == 0 && SSL_get_state(session_) == TLS_ST_BEFORE;
  why_ = reason_of_failure(session_, error);
  distrusts_ = SSL_get_verify_result(session_) != X509_V_OK;
  failed_ = true;
  return TlsStep::failed;
}

TlsStep TlsSession::read(std::span<char> into, std::size_t& count) noexcept {
  ERR_clear_error();
  return step_of(SSL_read_ex(session_, into.data(), into.size(), &count));
}

TlsStep TlsSession::write(std::string_view bytes, std::size_t& count) noexcept {
  ERR_clear_error();
  return step_of(SSL_write_ex(session_, bytes.data(), bytes.size(), &count));
}

TlsStep TlsSession::finish() noexcept {
  if (failed_ || SSL_in_init(session_) != 0) return TlsStep::failed;
  ERR_clear_error();
  const int result = SSL_shutdown(session_);
  return result >= 0 ? TlsStep::done : step_of(result);  // does not wait for the other side's end
}

}  // namespace headrace::wire
