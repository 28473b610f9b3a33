#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "wire/client/channel.hpp"
#include "wire/client/endpoint.hpp"

/// What differs by protocol. The functions of gRPC are there in builds that speak it.
namespace headrace::wire::client {

/// The value of the header Authorization; empty where there is no token.
[[nodiscard]] std::string authorization_of(const Endpoint& endpoint);
[[nodiscard]] Requests http_metadata_request(const Endpoint& endpoint);
[[nodiscard]] Requests grpc_metadata_request(const Endpoint& endpoint);
[[nodiscard]] Requests http_infer_requests(const Endpoint& endpoint,
                                           const std::vector<std::vector<InputTensor>>& inputs,
                                           std::optional<Duration> deadline);
[[nodiscard]] Requests grpc_infer_requests(const Endpoint& endpoint,
                                           const std::vector<std::vector<InputTensor>>& inputs,
                                           std::optional<Duration> deadline);
/// Throw DataError.
[[nodiscard]] std::vector<ModelInput> read_http_metadata(const std::string& reply);
[[nodiscard]] std::vector<ModelInput> read_grpc_metadata(const std::string& reply);

[[nodiscard]] std::unique_ptr<Channel> make_http_channel(Shared& shared);
[[nodiscard]] std::unique_ptr<Channel> make_grpc_channel(Shared& shared);

}  // namespace headrace::wire::client
