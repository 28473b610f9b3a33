#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "headrace/base/detail/clock.hpp"
#include "wire/counters.hpp"

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
};

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
  std::string timeout{};                ///< gRPC: the header grpc-timeout; empty for none.
  std::vector<std::string> contents{};  ///< gRPC: a message with its prefix. HTTP: the whole request. At least one.
};

/// The request that asks how the model is described.
[[nodiscard]] Requests metadata_request(const Endpoint& endpoint);
/// Requests for inference, one for each element of `inputs`.
/// @param deadline  that the server is told, counted from when it has the request
[[nodiscard]] Requests infer_requests(const Endpoint& endpoint, const std::vector<std::vector<InputTensor>>& inputs,
                                      std::optional<Duration> deadline);
/// The inputs that the reply to a metadata_request() describes. Throws DataError for one that cannot be read.
[[nodiscard]] std::vector<ModelInput> read_metadata(const Endpoint& endpoint, const std::string& reply);

}  // namespace headrace::wire::client
