#include "headrace/base/error.hpp"
#include "headrace/wire/server.hpp"

namespace headrace::wire {

struct Server::State {};

Server::Server(ServerConfig /*config*/, std::vector<Model> /*models*/) {
  throw Exception(Errc::not_supported,
                  "this build of Headrace has no server: install libboost-dev and nlohmann-json3-dev, and build again");
}
Server::~Server() = default;
std::uint16_t Server::http_port() const noexcept { return 0; }
std::optional<std::uint16_t> Server::grpc_port() const noexcept { return {}; }
const std::string& Server::shm() const noexcept {
  static const std::string none;
  return none;
}
ServerStatistics Server::statistics() const { return {}; }
std::vector<ModelStatistics> Server::model_statistics() const { return {}; }
void Server::load(Model /*model*/) {}
bool Server::unload(std::string_view /*name*/, std::string_view /*reason*/) { return false; }
void Server::change(std::string_view /*name*/, const ModelChange& /*change*/) {}
bool Server::uses(const serve::Engine& /*engine*/) { return false; }
std::optional<ModelRequest> Server::next_model_request(Duration /*limit*/) { return {}; }
void Server::end_model_request(const ModelRequest& /*request*/, const std::optional<std::string>& /*failure*/) {}
void Server::reload_credentials() {}
std::vector<RequestTrace> Server::take_traces(std::size_t /*most*/, Duration /*limit*/) { return {}; }
bool Server::drain(Duration /*limit*/) { return true; }
void Server::stop() noexcept {}

}  // namespace headrace::wire
