#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "wire/client/channel.hpp"
#include "wire/client/endpoint.hpp"

/// Functions that differ by protocol. Those for gRPC exist only in builds with gRPC.
namespace headrace::wire::client {

/// The value of the parameter "priority" for high priority.
inline constexpr std::uint64_t kHighLevel = 1;

/// The value of the header Authorization; empty without a token.
[[nodiscard]] std::string authorization_of(const Endpoint& endpoint);
[[nodiscard]] Requests http_metadata_request(const Endpoint& endpoint);
[[nodiscard]] Requests grpc_metadata_request(const Endpoint& endpoint);
[[nodiscard]] Requests http_infer_requests(const Endpoint& endpoint,
                                           const std::vector<std::vector<InputTensor>>& inputs,
                                           const RequestOptions& options);
[[nodiscard]] Requests grpc_infer_requests(const Endpoint& endpoint,
                                           const std::vector<std::vector<InputTensor>>& inputs,
                                           const RequestOptions& options);
/// These functions throw DataError.
[[nodiscard]] std::vector<ModelInput> read_http_metadata(const std::string& reply);
[[nodiscard]] std::vector<ModelInput> read_grpc_metadata(const std::string& reply);

[[nodiscard]] std::unique_ptr<Channel> make_http_channel(Shared& shared);
[[nodiscard]] std::unique_ptr<Channel> make_grpc_channel(Shared& shared);

}  // namespace headrace::wire::client
