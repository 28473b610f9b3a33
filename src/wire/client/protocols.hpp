#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "wire/client/channel.hpp"
#include "wire/client/endpoint.hpp"

/// What differs by protocol. The functions of gRPC are there in builds that speak it.
namespace headrace::wire::client {

/// The parameter "priority" of a request that has high priority.
inline constexpr std::uint64_t kHighLevel = 1;

/// The value of the header Authorization; empty where there is no token.
[[nodiscard]] std::string authorization_of(const Endpoint& endpoint);
[[nodiscard]] Requests http_metadata_request(const Endpoint& endpoint);
[[nodiscard]] Requests grpc_metadata_request(const Endpoint& endpoint);
[[nodiscard]] Requests http_infer_requests(const Endpoint& endpoint,
                                           const std::vector<std::vector<InputTensor>>& inputs,
                                           const RequestOptions& options);
[[nodiscard]] Requests grpc_infer_requests(const Endpoint& endpoint,
                                           const std::vector<std::vector<InputTensor>>& inputs,
                                           const RequestOptions& options);
/// Throw DataError.
[[nodiscard]] std::vector<ModelInput> read_http_metadata(const std::string& reply);
[[nodiscard]] std::vector<ModelInput> read_grpc_metadata(const std::string& reply);

[[nodiscard]] std::unique_ptr<Channel> make_http_channel(Shared& shared);
[[nodiscard]] std::unique_ptr<Channel> make_grpc_channel(Shared& shared);

}  // namespace headrace::wire::client
