#include "headrace/base/error.hpp"
#include "wire/tls.hpp"

namespace headrace::wire {

TlsContext::TlsContext(TlsRole /*role*/, const TlsFiles& /*files*/, std::string_view /*protocol*/) {
  throw Exception(Errc::not_supported, "this build of Headrace has no TLS: install libssl-dev, and build again");
}
TlsContext::~TlsContext() = default;

TlsSession::TlsSession(std::shared_ptr<const TlsContext> /*context*/, TlsRole /*role*/, int /*socket*/,
                       const std::string& /*host*/) {}
TlsSession::~TlsSession() = default;
TlsStep TlsSession::greet() noexcept { return TlsStep::failed; }
TlsStep TlsSession::read(std::span<char> /*into*/, std::size_t& /*count*/) noexcept { return TlsStep::failed; }
TlsStep TlsSession::write(std::string_view /*bytes*/, std::size_t& /*count*/) noexcept { return TlsStep::failed; }
TlsStep TlsSession::finish() noexcept { return TlsStep::failed; }

}  // namespace headrace::wire
