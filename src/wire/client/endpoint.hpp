#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "headrace/base/detail/clock.hpp"
#include "wire/counters.hpp"
#include "wire/tls.hpp"

namespace headrace::wire::client {

/// A server of the Open Inference Protocol, and the model to query.
struct Endpoint {
  Protocol protocol = Protocol::grpc;
  std::string address;  ///< Numeric IPv4 or IPv6 address.
  std::uint16_t port = 0;
  std::string authority;  ///< Host and port as in URLs and requests.
  std::string model;
  /// Time limit for the server to accept connections, to accept them again after it closed them, and to send something
  /// while it has requests.
  Duration patience = std::chrono::seconds(10);
  std::shared_ptr<const TlsContext> tls{};  ///< Null for plain-text connections.
  std::string server_name{};  ///< With TLS: the name or address that the server's certificate must be valid for.
  std::string token{};        ///< Sent with each request as a bearer token; empty for none.
};

/// Security settings of an Endpoint.
struct Security {
  bool tls = false;           ///< Connections speak TLS.
  TlsFiles files{};           ///< The client's certificate and key, and its trusted authorities.
  std::string server_name{};  ///< As in Endpoint.
  std::string token_file{};   ///< File whose first token is sent; empty for none.
};

/// Reads the files of `security`. Throws SystemError for a file that cannot be read, UsageError for a file with
/// unusable content, Exception (Errc::not_supported) for TLS in a build without OpenSSL.
void secure(Endpoint& endpoint, const Security& security);

/// An input of a model, as the server describes it. A dimension below 0 may have any size.
struct ModelInput {
  std::string name{};
  std::string datatype{};
  std::vector<std::int64_t> shape{};
};

/// An input of a request.
struct InputTensor {
  std::string name;
  std::string datatype;
  std::vector<std::int64_t> shape;
  std::string bytes;  ///< In the format of raw_input_contents and binary tensors.
};

/// Encoded requests, which are sent in turn.
struct Requests {
  std::string path{};                   ///< gRPC: the path of the method.
  std::string authorization{};          ///< gRPC: the header "authorization"; empty for none.
  std::string timeout{};                ///< gRPC: the header grpc-timeout; empty for none.
  std::vector<std::string> contents{};  ///< gRPC: a message with its prefix. HTTP: the whole request. At least one.
  std::vector<std::string> high_contents{};  ///< The same requests with high priority; empty if no request has it.
};

/// The request for the model's description.
[[nodiscard]] Requests metadata_request(const Endpoint& endpoint);
/// Options that all inference requests of a load share.
struct RequestOptions {
  std::optional<Duration> deadline{};  ///< Deadline that the server is told, counted from its receipt of the request.
  bool with_high = false;              ///< Some requests have high priority.
};

/// Inference requests, one for each element of `inputs`.
[[nodiscard]] Requests infer_requests(const Endpoint& endpoint, const std::vector<std::vector<InputTensor>>& inputs,
                                      const RequestOptions& options);
/// The inputs that the reply to a metadata_request() describes. Throws DataError if the reply cannot be read.
[[nodiscard]] std::vector<ModelInput> read_metadata(const Endpoint& endpoint, const std::string& reply);

}  // namespace headrace::wire::client
