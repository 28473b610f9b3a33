#include "headrace/wire/server.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "headrace/base/detail/threads.hpp"
#include "headrace/base/error.hpp"
#include "headrace/config.hpp"
#include "headrace/device/detail/foreign_memory.hpp"
#include "headrace/device/device.hpp"
#include "wire/listener.hpp"
#include "wire/server_state.hpp"

namespace headrace::wire {

namespace {

constexpr std::uint32_t kThreadsMax = 256;
constexpr std::uint32_t kHeadBytesMax = 1 << 20;
constexpr std::uint32_t kConnectionsMax = 1 << 20;
constexpr Duration kDrainLook = std::chrono::milliseconds(1);

void require(bool holds, std::string_view message) {
  if (!holds) throw UsageError(fmt::format("server: {}", message));
}

ServerConfig checked(ServerConfig config) {
  require(config.threads >= 1 && config.threads <= kThreadsMax, "threads must be 1 to 256");
  require(config.connections_max >= 1 && config.connections_max <= kConnectionsMax,
          "connections_max must be 1 to 1,048,576");
  require(config.head_bytes_max >= 1024 && config.head_bytes_max <= kHeadBytesMax,
          "head_bytes_max must be 1 KiB to 1 MiB");
  require(config.body_bytes_max >= 1024, "body_bytes_max must be at least 1 KiB");
  require(config.memory_max >= config.body_bytes_max, "memory_max must be at least body_bytes_max");
  require(config.waiting_max >= 1, "waiting_max must be at least 1");
  if (!(config.tls_certificate.empty() && config.tls_key.empty()) && !kBuiltWithTls) {
    throw Exception(Errc::not_supported, "this build of Headrace has no TLS: install libssl-dev, and build again");
  }
  if (config.grpc_port && !kBuiltWithGrpc) {
    throw Exception(Errc::not_supported, "this build of Headrace has no gRPC: install libnghttp2-dev, and build again");
  }
  require(config.request_max > Duration::zero() && config.idle_max > Duration::zero(),
          "request_max and idle_max must be more than 0");
  if (config.cuda_shared_memory) {
    require(!shareable_devices().empty(),
            fmt::format("CUDA shared memory needs a CUDA device, and there is none: {}", Device::cuda_absence()));
  }
  if (!config.shm.empty()) {
    require(rings::is_server_name(config.shm),
            fmt::format("shm must be a name of {}, not '{}'", rings::kServerNames, config.shm));
    require(config.shm_threads >= 1 && config.shm_threads <= kThreadsMax, "shm_threads must be 1 to 256");
    require(config.shm_clients_max >= 1 && config.shm_clients_max <= kConnectionsMax,
            "shm_clients_max must be 1 to 1,048,576");
    require(config.shm_slots_max >= 1 && config.shm_slots_max <= rings::kSlotsMost,
            "shm_slots_max must be 1 to 65,536");
    require(config.shm_spin >= Duration::zero(), "shm_spin must not be negative");
  }
  return config;
}

}  // namespace

Server::State::State(ServerConfig config, std::vector<Model> models, FileDescriptor watcher)
    : shared(checked(std::move(config))) {
  shared.credentials = std::make_shared<const Credentials>(shared.config);
  auto first_models = std::make_shared<const Models>(std::move(models), shared.threads());
  const std::string& address = shared.config.address;
  std::vector<Listener> first(1);
  first[0].socket = listen_on(address, shared.config.http_port, false);
  port = port_of(first[0].socket);
  if (shared.config.grpc_port) {
    first.push_back({listen_on(address, *shared.config.grpc_port, false), Protocol::grpc});
    grpc_port = port_of(first[1].socket);
  }
  threads.emplace_back(shared, 0, std::move(first));
  while (threads.size() < shared.config.threads) {
    std::vector<Listener> next(1);
    next[0].socket = listen_on(address, port, true);
    if (grpc_port) next.push_back({listen_on(address, *grpc_port, true), Protocol::grpc});
    threads.emplace_back(shared, threads.size(), std::move(next));
  }
  if (watcher.valid()) {
    const int flags = ::fcntl(watcher.get(), F_GETFL);
    if (flags < 0 || ::fcntl(watcher.get(), F_SETFL, flags | O_NONBLOCK) < 0) throw_errno("using the watcher's socket");
    threads.front().adopt(std::move(watcher));
  }
  if (!shared.config.shm.empty()) listen_for_rings();
  for (const RepositoryEntry& entry : first_models->entries()) hand_out(make_ways(*entry.served));
  shared.published = std::move(first_models);
  shared.news.store(1, std::memory_order_release);
}

Server::State::~State() { stop(); }

void Server::State::listen_for_rings() {
  for (std::size_t i = threads.size(); i < shared.threads(); ++i) ring_threads.emplace_back(shared, i);
  ring_threads.front().listen(rings::listen_as(shared.config.shm), [this](FileDescriptor socket) {
    std::ranges::min_element(ring_threads, {}, &rings::RingThread::clients)->adopt(std::move(socket));
  });
}

void Server::State::start() {
  start_each("server threads", threads.size(), [&](std::size_t i) { threads[i].start(); });
  start_each("threads for shared memory", ring_threads.size(), [&](std::size_t i) { ring_threads[i].start(); });
}

void Server::State::wake() noexcept {
  const std::lock_guard locked(mutex);
  each_thread([](auto& thread) { thread.wake(); });
}

void Server::State::stop() noexcept {
  shared.stopping.store(true, std::memory_order_release);
  shared.calls.close();
  const std::lock_guard locked(mutex);
  threads.clear();
  while (!ring_threads.empty()) ring_threads.pop_front();  // the first uses the others
  shared.traces.close();
}

Server::Server(ServerConfig config, std::vector<Model> models) {
  FileDescriptor watcher(config.watcher);  // closed in any case
  state_ = std::make_unique<State>(std::move(config), std::move(models), std::move(watcher));
  state_->start();
}

Server::~Server() = default;

std::uint16_t Server::http_port() const noexcept { return state_->port; }

std::optional<std::uint16_t> Server::grpc_port() const noexcept { return state_->grpc_port; }

const std::string& Server::shm() const noexcept { return state_->shared.config.shm; }

std::size_t Shared::memory_used() const noexcept {
  std::size_t spare = 0;
  for (const InferencePool& one : inferences) spare += one.budget().spare();
  const std::size_t used = memory.used();
  return used - std::min(used, spare);  // the sums may not match, because threads keep running
}

ServerStatistics Shared::statistics() const {
  ServerStatistics sum{.connections = connections,
                       .connections_open = connections_open,
                       .connections_refused = connections_refused,
                       .memory_bytes = memory_used(),
                       .memory_limit_bytes = memory.limit()};
  for (const ReplyCounters& one : replies) {
    sum.unauthorized += one.unauthorized.get();
    sum.handshakes += one.handshakes.get();
    sum.handshakes_failed += one.handshakes_failed.get();
    sum.http += one.protocols[static_cast<std::size_t>(Protocol::http)].get();
    sum.grpc += one.protocols[static_cast<std::size_t>(Protocol::grpc)].get();
    sum.shm += one.protocols[static_cast<std::size_t>(Protocol::shm)].get();
  }
  for (const Outcomes& one : {sum.http, sum.grpc, sum.shm}) {
    sum.requests += one.total();
    sum.failed += one.total() - one.answered;
    sum.refused += one.refused;
  }
  sum.traces_dropped = traces.dropped();
  if (sum.handshakes_failed > 0) sum.handshake_failure = handshake_failure.load(std::memory_order_relaxed);
  {
    const std::lock_guard locked(publishing);
    const auto tls = credentials == nullptr ? nullptr : credentials->tls_of(Protocol::http);
    if (tls != nullptr) sum.certificate_ends = tls->certificate_ends();
  }
  return sum;
}

ServerStatistics Server::statistics() const { return state_->shared.statistics(); }

std::vector<ModelStatistics> Server::model_statistics() const {
  std::vector<ModelStatistics> list;
  const std::shared_ptr<const Models> models = state_->shared.models();
  for (const RepositoryEntry& entry : models->entries()) list.push_back(entry.statistics());
  return list;
}

void Server::reload_credentials() {
  State& state = *state_;
  const ServerConfig& config = state.shared.config;
  require(!(config.tls_certificate.empty() && config.token_file.empty()), "there are no credential files to reload");
  const std::lock_guard locked(state.changing);
  state.publish(std::make_shared<const Credentials>(config));
}

std::vector<RequestTrace> Server::take_traces(std::size_t most, Duration limit) {
  return state_->shared.traces.take(most, limit);
}

bool Server::drain(Duration limit) {
  const Time began = SteadyClock::now();
  state_->shared.draining.store(true, std::memory_order_release);
  state_->wake();
  while (state_->shared.connections_open.load(std::memory_order_acquire) > 0) {
    if (SteadyClock::now() - began >= limit) return false;
    std::this_thread::sleep_for(kDrainLook);
  }
  return true;
}

void Server::stop() noexcept { state_->stop(); }

}  // namespace headrace::wire
