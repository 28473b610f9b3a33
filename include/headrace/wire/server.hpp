#pragma once

// A Server answers other processes with the engines of its models: over HTTP and gRPC, by the Open Inference Protocol,
// and through shared memory.
//
//     auto serve = [](headrace::wire::Model model) {
//       headrace::wire::Server server({.http_port = 8000, .grpc_port = 8001}, {std::move(model)});
//       std::printf("listening on port %d\n", server.http_port());
//       std::getchar();  // serves until Enter is pressed
//       server.drain(std::chrono::seconds(10));
//     };

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/base/detail/clock.hpp"
#include "headrace/wire/detail/model_request.hpp"
#include "headrace/wire/detail/request_trace.hpp"
#include "headrace/wire/detail/statistics.hpp"
#include "headrace/wire/model.hpp"

namespace headrace::wire {

/// What a server listens to, and what its clients may use.
struct ServerConfig {
  std::string address = "127.0.0.1";  ///< IPv4 or IPv6; "0.0.0.0" or "::" for every interface.
  std::uint16_t http_port = 8000;     ///< 0: any free port.
  /// The port for gRPC, usually 8001; 0: any free port; empty: no gRPC.
  std::optional<std::uint16_t> grpc_port = {};
  std::uint32_t threads = 1;              ///< Each has an event loop, its connections and a client of every engine.
  std::uint32_t connections_max = 4096;   ///< Beyond that, the longest idle connection is closed.
  std::size_t head_bytes_max = 16 << 10;  ///< A request's line and headers.
  std::size_t body_bytes_max = 64 << 20;  ///< One request's tensors and JSON; a message of gRPC.
  std::size_t memory_max = std::size_t{1} << 30;  ///< All requests and replies together.
  std::uint32_t waiting_max = 4096;  ///< Queries of a model that may wait for slots of its engine, for each thread.
  Duration request_max = std::chrono::seconds(30);  ///< From a request's first byte to its last.
  Duration idle_max = std::chrono::seconds(75);     ///< Between requests, and without progress of a reply.
  bool page = true;  ///< Answers GET / with a page for browsers that shows what the server does and can submit a query.
  /// Whether clients may register POSIX shared memory for their tensors. Every client can then make the server read and
  /// write any object in /dev/shm that this process may open.
  bool shared_memory = false;
  /// Whether clients may register memory of CUDA devices for their tensors. Every client can then make the server read
  /// and write any device memory that a process shares, and one that frees such memory too early can make the device,
  /// and all engines on it, fail. Needs a CUDA device.
  bool cuda_shared_memory = false;
  std::uint64_t shared_memory_max = std::uint64_t{16} << 30;  ///< Bytes of all regions of both kinds together.
  /// The name in "shm://NAME/MODEL", under which clients of this machine and user ask through rings in shared memory,
  /// see wire::Client: 1 to 64 letters, digits, '.', '_' and '-'. Empty: no shared memory.
  std::string shm = {};
  std::uint32_t shm_threads = 1;                      ///< Threads for these clients; each is a client of every engine.
  std::uint32_t shm_clients_max = 64;                 ///< Clients with rings; more are refused.
  std::uint32_t shm_slots_max = 4096;                 ///< Queries that one of them may have in flight.
  Duration shm_spin = std::chrono::microseconds(50);  ///< How long an idle thread polls rings before it sleeps.
  /// Whether clients may ask for models to be loaded, changed and unloaded. The program must then handle
  /// Server::next_model_request().
  bool model_control = false;
  /// PEM file of the server's certificate, followed by the chain to its authority. Both ports then speak TLS 1.2 or
  /// 1.3.
  std::string tls_certificate = {};
  /// PEM file of the certificate's private key; given together with it.
  std::string tls_key = {};
  /// PEM file of authorities: a client must present a certificate signed by one of them.
  std::string tls_clients = {};
  /// File of tokens, one of which every request must carry ("Authorization: Bearer TOKEN"). Only the health endpoints
  /// and the page, which shows nothing without a token, need none. One token a line, optionally followed by a space and
  /// its name. Empty lines and lines that begin with # are ignored.
  std::string token_file = {};
  /// Accepts tokens without TLS even if `address` is not a loopback address.
  bool plain_tokens = false;
  /// Most inference requests kept for take_traces() whose caller samples a trace (header "traceparent" of W3C Trace
  /// Context). Further ones are dropped and counted. 0: none are traced.
  std::uint32_t traces_max = 0;
  /// A stream socket over which a supervising program asks for the server's health, without TLS. It does not count
  /// towards `connections_max`, and the server closes it. -1: none.
  int watcher = -1;
};

/// Serves models to other processes: the Open Inference Protocol (KServe v2) over HTTP/1.1, with JSON and binary
/// tensors, and over gRPC, as Triton's clients speak it.
///
///   Server server({.http_port = 8000}, {model});
///   ... server.drain(std::chrono::seconds(10));
class Server {
 public:
  /// Starts to listen and to answer. Throws UsageError for models or limits that cannot be served, such as an engine
  /// whose Plan::clients_max is below the sum of `threads` and `shm_threads`, and for `cuda_shared_memory` without a
  /// CUDA device; SystemError if the address or a port is
  /// not available; Exception (Errc::not_supported) for gRPC or TLS in a build without it.
  Server(ServerConfig config, std::vector<Model> models);
  /// As stop().
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  /// The port for HTTP that the server listens on.
  [[nodiscard]] std::uint16_t http_port() const noexcept;
  /// The port for gRPC that the server listens on; empty without gRPC.
  [[nodiscard]] std::optional<std::uint16_t> grpc_port() const noexcept;
  /// ServerConfig::shm; empty without shared memory.
  [[nodiscard]] const std::string& shm() const noexcept;
  /// What the server has done since its construction. Any thread; also after stop().
  [[nodiscard]] ServerStatistics statistics() const;
  /// The statistics of each model name, in order of first loading, including models that are not loaded now. Any
  /// thread; also after stop().
  [[nodiscard]] std::vector<ModelStatistics> model_statistics() const;

  /// Starts to serve `model`, replacing the model of that name, if any. Once this returns, new requests go to the new
  /// model; the former one still answers requests that it has begun, see uses(). The statistics of the name continue.
  /// Any thread. Throws UsageError, without any change, for a model that cannot be served or after stop().
  void load(Model model);
  /// Stops serving the model of that name: new requests for it are refused with `reason` (404, NOT_FOUND), and requests
  /// that it has begun are still answered, see uses(). False if there was no such model. Any thread.
  bool unload(std::string_view name, std::string_view reason = "unloaded");
  /// Changes a model, and the plan of its engine, while it is served. No request is lost, and each is answered once or
  /// refused. serve::Engine::change() says what happens to the queries that the engine has. For requests that wait for
  /// slots:
  ///
  /// - latency_max counts from when a request has been read. A waiting request keeps its deadline, unless the bound,
  ///   counted from when the engine takes its queries, is earlier.
  /// - Under a lower waiting_max they go on waiting. Until there are fewer, a new request waits only if it takes the
  ///   place of another one, as in a full line.
  ///
  /// Returns when the change is in force. Any thread. Throws UsageError if there is no such model, and otherwise as
  /// serve::Engine::change(); then nothing has changed.
  void change(std::string_view name, const ModelChange& change);
  /// True while the server may send queries to the engine or waits for its answers. Once it is false for an engine
  /// whose model was replaced or unloaded, the engine may be stopped.
  [[nodiscard]] bool uses(const serve::Engine& engine);
  /// Waits for a client's request to load, change or unload a model; empty once `limit` has passed, or after stop().
  /// Requests come one at a time, and each must be ended by end_model_request(). Needs ServerConfig::model_control. Any
  /// thread.
  [[nodiscard]] std::optional<ModelRequest> next_model_request(Duration limit);
  /// Tells the client that its request is done, or why it failed. The list of models shows that reason for a name
  /// without a model.
  void end_model_request(const ModelRequest& request, const std::optional<std::string>& failure = {});

  /// Waits until a traced request has ended or `limit` has passed, and returns at most `most` of those that have, in
  /// the order in which they ended. After stop() it returns what is left. Needs ServerConfig::traces_max. Any thread.
  [[nodiscard]] std::vector<RequestTrace> take_traces(std::size_t most, Duration limit);

  /// Reads the files of certificates and tokens again. New connections use the new certificates, and all later requests
  /// the new tokens; open connections stay. Any thread. Throws as the constructor does, and UsageError if there are no
  /// such files or after stop(); the former credentials then stay in use.
  void reload_credentials();

  /// Reports that it is not ready, accepts no more connections, closes idle ones, and waits until every request that
  /// has begun is answered or `limit` has passed. False if requests are left.
  bool drain(Duration limit);
  /// Closes all connections and ends the threads. It waits for queries in flight and drops their answers.
  void stop() noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace headrace::wire
