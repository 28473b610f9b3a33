#include <fmt/format.h>

#include <chrono>
#include <nlohmann/json.hpp>

#include "headrace/base/error.hpp"
#include "wire/client/protocols.hpp"

namespace headrace::wire::client {

namespace {

using nlohmann::json;

/// The header line with the token; empty without a token.
std::string authorization_line(const Endpoint& endpoint) {
  return endpoint.token.empty() ? std::string() : fmt::format("Authorization: {}\r\n", authorization_of(endpoint));
}

std::string infer_request(const Endpoint& endpoint, const std::vector<InputTensor>& inputs,
                          std::optional<Duration> deadline, bool is_high) {
  json head{{"parameters", {{"binary_data_output", true}}}, {"inputs", json::array()}};
  if (deadline)
    head["parameters"]["timeout"] = std::chrono::duration_cast<std::chrono::microseconds>(*deadline).count();
  if (is_high) head["parameters"]["priority"] = kHighLevel;
  std::string tensors;
  for (const InputTensor& input : inputs) {
    head["inputs"].push_back({{"name", input.name},
                              {"datatype", input.datatype},
                              {"shape", input.shape},
                              {"parameters", {{"binary_data_size", input.bytes.size()}}}});
    tensors += input.bytes;
  }
  const std::string text = head.dump();
  return fmt::format(
             "POST /v2/models/{}/infer HTTP/1.1\r\nHost: {}\r\n{}Content-Type: application/octet-stream\r\n"
             "Inference-Header-Content-Length: {}\r\nContent-Length: {}\r\n\r\n",
             endpoint.model, endpoint.authority, authorization_line(endpoint), text.size(),
             text.size() + tensors.size()) +
         text + tensors;
}

}  // namespace

Requests http_metadata_request(const Endpoint& endpoint) {
  return {.contents = {fmt::format("GET /v2/models/{} HTTP/1.1\r\nHost: {}\r\n{}\r\n", endpoint.model,
                                   endpoint.authority, authorization_line(endpoint))}};
}

Requests http_infer_requests(const Endpoint& endpoint, const std::vector<std::vector<InputTensor>>& inputs,
                             const RequestOptions& options) {
  Requests requests;
  for (const auto& of_one : inputs) {
    requests.contents.push_back(infer_request(endpoint, of_one, options.deadline, false));
    if (options.with_high) requests.high_contents.push_back(infer_request(endpoint, of_one, options.deadline, true));
  }
  return requests;
}

std::vector<ModelInput> read_http_metadata(const std::string& reply) {
  std::vector<ModelInput> inputs;
  try {
    const json described = json::parse(reply);
    for (const json& input : described.at("inputs")) {
      inputs.push_back({.name = input.at("name").get<std::string>(),
                        .datatype = input.at("datatype").get<std::string>(),
                        .shape = input.at("shape").get<std::vector<std::int64_t>>()});
    }
  } catch (const json::exception& error) {
    throw DataError(fmt::format("the description does not have the expected form: {}", error.what()));
  }
  return inputs;
}

}  // namespace headrace::wire::client
