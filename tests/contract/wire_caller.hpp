#pragma once

#include <arpa/inet.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/file_descriptor.hpp"

/// Clients of a server that speak HTTP/1.1 over the loopback.
namespace headrace::testing {

/// A server's reply to one request.
struct Said {
  int status = 0;
  std::string head = {};
  std::string body = {};
};

/// A connection to a server.
class Caller {
 public:
  explicit Caller(std::uint16_t port) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&to), sizeof(to)), 0);
    const timeval limit{.tv_sec = 60, .tv_usec = 0};
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
  }

  void send(std::string_view bytes) const {
    while (!bytes.empty()) {
      const ssize_t count = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (count <= 0) return;
      bytes.remove_prefix(static_cast<std::size_t>(count));
    }
  }
  void finish() const { ::shutdown(socket_.get(), SHUT_WR); }

  /// The next reply; empty if the server closes the connection instead.
  [[nodiscard]] std::optional<Said> listen() {
    std::size_t end = std::string::npos;
    while ((end = come_.find("\r\n\r\n")) == std::string::npos) {
      if (!more()) return {};
    }
    Said said{.head = come_.substr(0, end + 4)};
    said.status = std::stoi(said.head.substr(9, 3));
    constexpr std::string_view kLength = "Content-Length: ";
    const std::size_t bytes = std::stoul(said.head.substr(said.head.find(kLength) + kLength.size()));
    while (come_.size() < end + 4 + bytes) {
      if (!more()) return {};
    }
    said.body = come_.substr(end + 4, bytes);
    come_.erase(0, end + 4 + bytes);
    return said;
  }
  /// Whether the server closes the connection without sending another byte.
  [[nodiscard]] bool closed() { return come_.empty() && !more(); }

 private:
  bool more() {
    char bytes[4096];
    const ssize_t count = ::recv(socket_.get(), bytes, sizeof(bytes), 0);
    EXPECT_FALSE(count < 0 && errno == EAGAIN) << "the server neither replied nor closed the connection";
    if (count <= 0) return false;
    come_.append(bytes, static_cast<std::size_t>(count));
    return true;
  }

  FileDescriptor socket_;
  std::string come_;
};

inline std::string request(std::string_view method, std::string_view path, std::string_view body = {},
                           std::string_view headers = {}) {
  return fmt::format("{} {} HTTP/1.1\r\nHost: test\r\n{}Content-Length: {}\r\n\r\n{}", method, path, headers,
                     body.size(), body);
}

/// A request of `batch` queries with a binary tensor and binary answers.
inline std::string infer(std::string_view name, std::string_view queries, std::size_t batch, std::string_view shape,
                         std::string_view type, std::string_view parameters = {}) {
  const std::string json = fmt::format(
      R"({{"id":"7","parameters":{{"binary_data_output":true{}}},"inputs":[{{"name":"query","datatype":"{}","shape":[{}{}],)"
      R"("parameters":{{"binary_data_size":{}}}}}]}})",
      parameters, type, batch, shape, queries.size());
  return request("POST", fmt::format("/v2/models/{}/infer", name), json + std::string(queries),
                 fmt::format("Inference-Header-Content-Length: {}\r\n", json.size()));
}

inline std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// The binary tensors of a reply.
inline std::string_view tensors_of(const Said& said) {
  constexpr std::string_view kName = "Inference-Header-Content-Length: ";
  const std::size_t at = said.head.find(kName);
  if (at == std::string::npos) return {};
  return std::string_view(said.body).substr(std::stoul(said.head.substr(at + kName.size())));
}

}  // namespace headrace::testing
