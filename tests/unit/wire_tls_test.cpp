#include "wire/tls.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>

#include "base/file_descriptor.hpp"
#include "headrace/base/error.hpp"
#include "tests/temporary_folder.hpp"
#include "wire/transport.hpp"

/// Both sides of TLS over a socket with small buffers, with an attacker in between who may change bytes.
namespace headrace::wire {
namespace {

using testing::TemporaryFolder;

template <auto Free>
struct FreeBy {
  template <class T>
  void operator()(T* object) const noexcept {
    Free(object);
  }
};
using Key = std::unique_ptr<EVP_PKEY, FreeBy<EVP_PKEY_free>>;
using X509Pointer = std::unique_ptr<X509, FreeBy<X509_free>>;

/// A self-signed certificate for localhost and 127.0.0.1, as PEM files.
TlsFiles made_files(const TemporaryFolder& folder, const std::string& name) {
  const Key key(EVP_EC_gen("P-256"));
  const X509Pointer certificate(X509_new());
  X509_set_version(certificate.get(), X509_VERSION_3);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate.get()), 1);
  X509_gmtime_adj(X509_getm_notBefore(certificate.get()), -60);
  X509_gmtime_adj(X509_getm_notAfter(certificate.get()), 3600);
  X509_set_pubkey(certificate.get(), key.get());
  X509_NAME* const subject = X509_get_subject_name(certificate.get());
  X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1,
                             0);
  X509_set_issuer_name(certificate.get(), subject);
  for (const auto& [which, value] : {std::pair(NID_subject_alt_name, "DNS:localhost,IP:127.0.0.1"),
                                     std::pair(NID_basic_constraints, "critical,CA:TRUE")}) {
    X509_EXTENSION* const extension = X509V3_EXT_conf_nid(nullptr, nullptr, which, value);
    X509_add_ext(certificate.get(), extension, -1);
    X509_EXTENSION_free(extension);
  }
  X509_sign(certificate.get(), key.get(), EVP_sha256());
  const TlsFiles files{.certificate = folder.path() / (name + ".pem"), .key = folder.path() / (name + ".key")};
  std::FILE* file = std::fopen(files.certificate.c_str(), "w");
  PEM_write_X509(file, certificate.get());
  std::fclose(file);
  file = std::fopen(files.key.c_str(), "w");
  PEM_write_PrivateKey(file, key.get(), nullptr, nullptr, 0, nullptr, nullptr);
  std::fclose(file);
  return files;
}

std::pair<FileDescriptor, FileDescriptor> small_sockets() {
  std::array<int, 2> ends{};
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends.data()), 0);
  const int bytes = 4096;
  for (const int end : ends) ::setsockopt(end, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
  return {FileDescriptor(ends[0]), FileDescriptor(ends[1])};
}

/// One side, with the bytes that it has to send and those that it has received.
struct Side {
  Transport transport;
  std::string out;
  std::string in;
  Transfer last = Transfer::wait;  ///< Last result of receive().

  /// Sends and receives a few bytes; returns whether any have moved.
  bool step(std::mt19937& draw) {
    bool moves = false;
    std::size_t count = 0;
    if (!out.empty()) {
      const std::string moved = out;  // at a new address each time
      if (transport.send(moved, count) == Transfer::some) {
        out.erase(0, count);
        moves = true;
      }
    }
    std::array<char, 20'000> buffer;
    const std::size_t most = 1 + draw() % buffer.size();
    last = transport.receive(std::span(buffer).first(most), count);
    if (last != Transfer::some) return moves;
    in.append(buffer.data(), count);
    return true;
  }
};

class WireTls : public ::testing::Test {
 protected:
  /// Both sides of a connection, before the handshake.
  void connect(const TlsFiles& server, const TlsFiles& client, const std::string& host = "localhost",
               std::string_view server_protocol = "h2", std::string_view client_protocol = "h2") {
    auto [one, other] = small_sockets();
    server_context_ = std::make_shared<const TlsContext>(TlsRole::server, server, server_protocol);
    client_context_ = std::make_shared<const TlsContext>(TlsRole::client, client, client_protocol);
    auto of_server = std::make_unique<TlsSession>(server_context_, TlsRole::server, one.get());
    auto of_client = std::make_unique<TlsSession>(client_context_, TlsRole::client, other.get(), host);
    server_.emplace(Side{.transport = Transport(std::move(one), std::move(of_server)), .out = {}, .in = {}});
    client_.emplace(Side{.transport = Transport(std::move(other), std::move(of_client)), .out = {}, .in = {}});
  }
  /// Whether the handshake is done on both sides.
  [[nodiscard]] bool greet() {
    for (int i = 0; i < 100; ++i) {
      for (Side* const side : {&*client_, &*server_}) {
        if (side->transport.greets() && side->transport.greet() == TlsStep::failed) return false;
      }
      if (!client_->transport.greets() && !server_->transport.greets()) return true;
    }
    return false;
  }
  /// Runs both sides until neither makes progress. A record may take several steps that only wait.
  void exchange() {
    constexpr int kQuiet = 64;
    for (int quiet = 0; quiet < kQuiet; ++quiet) {
      const bool client_moves = client_->step(draw_);
      if (server_->step(draw_) || client_moves) quiet = 0;
    }
  }
  /// A TLS 1.3 client has done its part before the server has checked its certificate.
  [[nodiscard]] const char* why_server() const { return server_->transport.tls()->why(); }
  [[nodiscard]] const char* why_client() const { return client_->transport.tls()->why(); }

  TemporaryFolder folder_;
  TlsFiles own_ = made_files(folder_, "server");
  TlsFiles trusting_{.certificate = {}, .key = {}, .authorities = own_.certificate};
  std::shared_ptr<const TlsContext> server_context_;
  std::shared_ptr<const TlsContext> client_context_;
  std::optional<Side> server_;
  std::optional<Side> client_;
  std::mt19937 draw_{7};
};

std::string random_text(std::mt19937& draw, std::size_t bytes) {
  std::string text(bytes, '\0');
  std::ranges::generate(text, [&] { return static_cast<char>(draw()); });
  return text;
}

TEST_F(WireTls, BytesGoBothWaysAtTheSameTimeThroughSmallBuffers) {
  connect(own_, trusting_);
  ASSERT_TRUE(greet());
  for (const std::size_t bytes : {1, 16'384, 16'385, 300'000}) {
    const std::string there = random_text(draw_, bytes);
    const std::string back = random_text(draw_, bytes + 7);
    client_->out = there;
    server_->out = back;
    exchange();
    EXPECT_TRUE(std::exchange(server_->in, {}) == there) << bytes;
    EXPECT_TRUE(std::exchange(client_->in, {}) == back) << bytes;
  }
  ASSERT_EQ(client_->transport.finish(), Transfer::some);
  exchange();
  EXPECT_EQ(server_->last, Transfer::ended);
}

TEST_F(WireTls, AnEndWaitsForRoom) {
  connect(own_, trusting_);
  ASSERT_TRUE(greet());
  const std::string text(100'000, 'x');
  server_->out = text;
  while (server_->step(draw_)) {
  }
  ASSERT_FALSE(server_->out.empty());
  while (!server_->out.empty()) {
    (void)client_->step(draw_);
    (void)server_->step(draw_);
  }
  while (server_->transport.finish() == Transfer::wait) (void)client_->step(draw_);
  exchange();
  EXPECT_EQ(client_->in, text);
  EXPECT_EQ(client_->last, Transfer::ended);
}

TEST_F(WireTls, BytesThatAreChangedOrCutOnTheirWayAreNoBytes) {
  for (int i = 0; i < 40; ++i) {
    connect(own_, trusting_);
    ASSERT_TRUE(greet());
    exchange();  // tickets
    // The client's bytes come out of a second socket pair and continue from there with the changes made.
    auto [relay, held] = small_sockets();
    const int kept = ::dup(client_->transport.descriptor());
    ::dup2(relay.get(), client_->transport.descriptor());
    client_->out = random_text(draw_, 1 + draw_() % 2000);
    const std::string sent = client_->out;
    (void)client_->step(draw_);
    std::array<char, 4096> record;
    const ssize_t count = ::recv(held.get(), record.data(), record.size(), 0);
    ASSERT_GT(count, 0);
    std::size_t bytes = static_cast<std::size_t>(count);
    if (i % 2 == 0) {
      record.at(draw_() % bytes) ^= static_cast<char>(1U << draw_() % 8);
    } else {
      bytes = draw_() % bytes;
    }
    ASSERT_EQ(::send(kept, record.data(), bytes, MSG_NOSIGNAL), static_cast<ssize_t>(bytes));
    ::shutdown(kept, SHUT_WR);
    while (server_->step(draw_)) {
    }
    EXPECT_EQ(server_->in, "") << i;
    EXPECT_TRUE(server_->last == Transfer::failed) << i;
    ::close(kept);
  }
}

TEST_F(WireTls, WhatIsNoTlsFails) {
  for (int i = 0; i < 60; ++i) {
    connect(own_, trusting_);
    std::string bytes = random_text(draw_, 1 + draw_() % 3000);
    if (i % 3 == 1) bytes = "\x16\x03\x01" + bytes;
    if (i % 3 == 2) bytes = "GET / HTTP/1.1\r\n\r\n" + bytes;
    ASSERT_GT(::send(client_->transport.descriptor(), bytes.data(), bytes.size(), MSG_NOSIGNAL), 0);
    ::shutdown(client_->transport.descriptor(), SHUT_WR);
    TlsStep step = TlsStep::wants_bytes;
    for (int tries = 0; tries < 10 && step != TlsStep::failed; ++tries) step = server_->transport.greet();
    EXPECT_EQ(step, TlsStep::failed) << i;
    EXPECT_EQ(server_->transport.tls()->met_plain_http(), i % 3 == 2);
    EXPECT_STRNE(why_server(), "");
  }
}

TEST_F(WireTls, WhoLeavesWithoutAWordIsNobody) {
  for (const std::string_view said : {"", "\x16\x03\x01\x02", "\x16\x03\x01z"}) {
    connect(own_, trusting_);
    ASSERT_EQ(::send(client_->transport.descriptor(), said.data(), said.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(said.size()));
    EXPECT_EQ(server_->transport.greet(), TlsStep::wants_bytes);
    ::shutdown(client_->transport.descriptor(), SHUT_WR);
    EXPECT_EQ(server_->transport.greet(), TlsStep::failed);
    EXPECT_TRUE(server_->transport.tls()->met_nobody());
  }
}

TEST_F(WireTls, AClientChecksWhomTheCertificateIsFor) {
  for (const char* const host : {"localhost", "127.0.0.1"}) {
    connect(own_, trusting_, host);
    EXPECT_TRUE(greet()) << host;
  }
  connect(own_, trusting_, "elsewhere");
  EXPECT_FALSE(greet());
  EXPECT_STREQ(why_client(), "hostname mismatch");
  connect(own_, trusting_, "127.0.0.2");
  EXPECT_FALSE(greet());
  EXPECT_STREQ(why_client(), "IP address mismatch");
  connect(own_, {});
  EXPECT_FALSE(greet());
}

TEST_F(WireTls, AServerMayAskForACertificate) {
  TlsFiles shown = made_files(folder_, "client");
  TlsFiles asking = own_;
  asking.authorities = shown.certificate;
  shown.authorities = own_.certificate;
  connect(asking, shown);
  EXPECT_TRUE(greet());
  connect(asking, trusting_);
  EXPECT_FALSE(greet());
  EXPECT_STREQ(why_server(), "peer did not return a certificate");
  TlsFiles strange = made_files(folder_, "strange");
  strange.authorities = own_.certificate;
  connect(asking, strange);
  EXPECT_FALSE(greet());
  EXPECT_STREQ(why_server(), "self-signed certificate");
}

TEST_F(WireTls, BothSidesAgreeOnAProtocol) {
  connect(own_, trusting_, "localhost", "http/1.1", "h2");
  EXPECT_FALSE(greet());
  EXPECT_STREQ(why_server(), "no application protocol");
}

TEST_F(WireTls, AContextMayBeReplacedDuringAHandshake) {
  connect(own_, trusting_);
  server_context_.reset();
  client_context_.reset();
  EXPECT_TRUE(greet());
}

TEST_F(WireTls, FilesThatWillNotDoAreErrors) {
  const TlsFiles other = made_files(folder_, "other");
  const auto make = [](const TlsFiles& files) { const TlsContext context(TlsRole::server, files, "h2"); };
  EXPECT_THROW(make({.certificate = "/nothing.pem", .key = own_.key, .authorities = {}}), SystemError);
  EXPECT_THROW(make({.certificate = own_.key, .key = own_.key, .authorities = {}}), UsageError);
  EXPECT_THROW(make({.certificate = own_.certificate, .key = other.key, .authorities = {}}), UsageError);
  EXPECT_THROW(make({.certificate = own_.certificate, .key = own_.key, .authorities = own_.key}), UsageError);
  const TlsContext context(TlsRole::server, own_, "h2");
  EXPECT_GT(context.certificate_ends(), 1'700'000'000);
}

}  // namespace
}  // namespace headrace::wire
