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

/// A server of the Open Inference Protocol, and what of it is asked.
struct Endpoint {
  Protocol protocol = Protocol::grpc;
  std::string address;  ///< In numbers, of IPv4 or IPv6.
  std::uint16_t port = 0;
  std::string authority;  ///< The host and port as users and requests write them.
  std::string model;
  /// How long the server may take to accept connections, to come back after it has closed them, and to send anything
  /// while it has requests.
  Duration patience = std::chrono::seconds(10);
  std::shared_ptr<const TlsContext> tls{};  ///< Null where connections are plain text.
  std::string server_name{};  ///< With TLS: the name or address that the server's certificate has to be for.
  std::string token{};        ///< Sent with each request as a bearer token; empty for none.
};

/// How an Endpoint is to be secured.
struct Security {
  bool tls = false;           ///< Connections speak TLS.
  TlsFiles files{};           ///< The client's certificate and key, and the authorities that it trusts.
  std::string server_name{};  ///< As in Endpoint.
  std::string token_file{};   ///< Its first token is sent; empty for none.
};

/// Reads the files of `security`. Throws SystemError for a file that cannot be read, UsageError for one whose content
/// will not do, Exception (Errc::not_supported) for TLS in a build without OpenSSL.
void secure(Endpoint& endpoint, const Security& security);

/// An input of a model, as the server describes it. A dimension of any size is below 0.
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
  std::string bytes;  ///< As raw_input_contents and binary tensors have them.
};

/// Requests as they go over a connection, one of which is sent after the other.
struct Requests {
  std::string path{};                   ///< gRPC: the method's.
  std::string authorization{};          ///< gRPC: the header of that name; empty for none.
  std::string timeout{};                ///< gRPC: the header grpc-timeout; empty for none.
  std::vector<std::string> contents{};  ///< gRPC: a message with its prefix. HTTP: the whole request. At least one.
  std::vector<std::string> high_contents{};  ///< The same requests with high priority; empty where none has it.
};

/// The request that asks how the model is described.
[[nodiscard]] Requests metadata_request(const Endpoint& endpoint);
/// What all requests for inference of a load say beside their inputs.
struct RequestOptions {
  std::optional<Duration> deadline{};  ///< That the server is told, counted from when it has the request.
  bool with_high = false;              ///< Some requests are to have high priority.
};

/// Requests for inference, one for each element of `inputs`.
[[nodiscard]] Requests infer_requests(const Endpoint& endpoint, const std::vector<std::vector<InputTensor>>& inputs,
                                      const RequestOptions& options);
/// The inputs that the reply to a metadata_request() describes. Throws DataError for one that cannot be read.
[[nodiscard]] std::vector<ModelInput> read_metadata(const Endpoint& endpoint, const std::string& reply);

}  // namespace headrace::wire::client
