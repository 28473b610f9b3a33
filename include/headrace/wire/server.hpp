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
  std::uint16_t http_port = 8000;     ///< 0: any that is free.
  /// For gRPC, where it is wanted; 0: any that is free. Usually 8001.
  std::optional<std::uint16_t> grpc_port = {};
  std::uint32_t threads = 1;                      ///< Each has a loop, its connections, and a client of every engine.
  std::uint32_t connections_max = 4096;           ///< Beyond, the client that has been silent for longest is closed.
  std::size_t head_bytes_max = 16 << 10;          ///< A request's line and headers.
  std::size_t body_bytes_max = 64 << 20;          ///< One request's tensors and JSON; a message of gRPC.
  std::size_t memory_max = std::size_t{1} << 30;  ///< All requests and replies together.
  std::uint32_t waiting_max = 4096;  ///< Queries of a model that wait for slots of its engine, for each thread.
  Duration request_max = std::chrono::seconds(30);  ///< From a request's first byte to its last.
  Duration idle_max = std::chrono::seconds(75);     ///< Between requests, and without progress of a reply.
  bool page = true;  ///< Answer GET / with a page for browsers that shows what the server does and asks a query.
  /// Whether clients may register POSIX shared memory for their tensors. Each of them can then have any object in
  /// /dev/shm read and written that this process may open.
  bool shared_memory = false;
  std::uint64_t shared_memory_max = std::uint64_t{16} << 30;  ///< Bytes of all regions that are registered.
  /// The name under which clients of this machine and user ask through rings in shared memory, "shm://NAME/MODEL", see
  /// wire::Client; empty: none do. 1 to 64 letters, digits, '.', '_' and '-'.
  std::string shm = {};
  std::uint32_t shm_threads = 1;                      ///< Threads for these clients; each is a client of every engine.
  std::uint32_t shm_clients_max = 64;                 ///< Clients with rings; more are refused.
  std::uint32_t shm_slots_max = 4096;                 ///< Queries that one of them may have in flight.
  Duration shm_spin = std::chrono::microseconds(50);  ///< How long an idle thread looks at rings before it sleeps.
  /// Whether clients may ask for models to be loaded and unloaded: the program answers next_model_request() then.
  bool model_control = false;
  /// PEM files of the server's certificate, with those that lead to its authority behind it, and of its key: both ports
  /// speak TLS then, 1.2 or 1.3.
  std::string tls_certificate = {};
  std::string tls_key = {};
  /// PEM file of authorities: a client has to show a certificate that one of them has signed.
  std::string tls_clients = {};
  /// File of tokens, one of which every request has to carry ("Authorization: Bearer TOKEN"); only the health of the
  /// server and the page, which shows nothing without one, need none. A token a line; what follows it behind a space is
  /// its name. Empty lines and those that begin with # are passed over.
  std::string token_file = {};
  /// Take tokens that come without TLS where `address` is not of the loopback.
  bool plain_tokens = false;
  /// Requests for inference whose caller samples a trace (header "traceparent" of W3C Trace Context) that are kept for
  /// take_traces(), at most; further ones are dropped and counted. 0: none are traced.
  std::uint32_t traces_max = 0;
  /// A stream socket that the program which watches this one holds the other end of, and asks for the server's health
  /// by, without TLS: it is not counted in `connections_max`. The server closes it. -1: none.
  int watcher = -1;
};

/// Serves models to other processes: the Open Inference Protocol (KServe v2) over HTTP/1.1, with JSON and binary
/// tensors, and over gRPC, as Triton's clients speak it.
///
///   Server server({.http_port = 8000}, {model});
///   ... server.drain(std::chrono::seconds(10));
class Server {
 public:
  /// Listens, and answers from then on. Throws UsageError for models or limits that cannot be served (an engine whose
  /// Plan::clients_max is below `threads` and `shm_threads` together among them), SystemError where the address or a
  /// port cannot be had, Exception (Errc::not_supported) for gRPC or TLS in a build without it.
  Server(ServerConfig config, std::vector<Model> models);
  /// Stops.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  /// The port that is listened to.
  [[nodiscard]] std::uint16_t http_port() const noexcept;
  /// The port for gRPC; empty where gRPC is not spoken.
  [[nodiscard]] std::optional<std::uint16_t> grpc_port() const noexcept;
  /// ServerConfig::shm; empty where there is no shared memory.
  [[nodiscard]] const std::string& shm() const noexcept;
  [[nodiscard]] ServerStatistics statistics() const;
  /// One for each name, in the order in which they came, also where it is not loaded. Any thread, after stop() as well.
  [[nodiscard]] std::vector<ModelStatistics> model_statistics() const;

  /// Serves `model` from then on, in the place of the model that has its name, if any. Once this returns, no request
  /// that comes is answered by the former; those that it has begun are, see uses(). The counts of the name go on. Any
  /// thread. Throws UsageError for a model that cannot be served or after stop(); then nothing has changed.
  void load(Model model);
  /// Serves the model of a name no more: requests for it are refused with `reason` (404, NOT_FOUND). Whether there was
  /// one. Those that it has begun are answered, see uses(). Any thread.
  bool unload(std::string_view name, std::string_view reason = "unloaded");
  /// Whether requests may still come to an engine of this server, or are not yet answered. Once it says no for an
  /// engine whose model was replaced or unloaded, the engine may be stopped.
  [[nodiscard]] bool uses(const serve::Engine& engine);
  /// What a client asks to be loaded or unloaded, once one does; nothing after `limit`, and after stop(). Requests come
  /// one after the other, and each is to be ended. With ServerConfig::model_control. Any thread.
  [[nodiscard]] std::optional<ModelRequest> next_model_request(Duration limit);
  /// Tells the client that its request is done, or why it has failed; a name that has no model is listed with that.
  void end_model_request(const ModelRequest& request, const std::optional<std::string>& failure = {});

  /// Requests that have ended and are part of a trace, in that order: `most` at most, once there is one or `limit` has
  /// passed. After stop() what is left. With ServerConfig::traces_max. Any thread.
  [[nodiscard]] std::vector<RequestTrace> take_traces(std::size_t most, Duration limit);

  /// Reads the files of certificates and tokens again: connections that come use the new ones, and so do requests on
  /// all connections. Those that are open stay. Any thread. Throws as the constructor does, and UsageError where there
  /// are none or after stop(); then the former ones go on.
  void reload_credentials();

  /// Says that it is not ready, accepts no more connections, closes those that are idle, and waits until every request
  /// that has begun is answered, or `limit` has passed; whether all were answered.
  bool drain(Duration limit);
  /// Closes all connections and ends the threads. Queries under way are waited for, and their answers dropped.
  void stop() noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace headrace::wire
