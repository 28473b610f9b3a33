#include "wire/front_thread.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <iterator>
#include <new>
#include <utility>

#include "base/exception_memory.hpp"
#include "headrace/config.hpp"
#include "wire/grpc/connection.hpp"
#include "wire/http/connection.hpp"

namespace headrace::wire {

namespace {

constexpr std::size_t kBufferBytes = 64 << 10;
constexpr Duration kCheckEvery = std::chrono::milliseconds(100);
constexpr int kAcceptsMax = 64;                               // most connections accepted in one turn
constexpr Duration kTurnsFor = std::chrono::milliseconds(1);  // deferred work before events are checked again
constexpr std::size_t kMostSilentMax = 64;                    // most connections that one search finds
constexpr std::size_t kSpareMax = 64 << 10;                   // most spare bytes of requests per thread
constexpr std::size_t kSpareParts = 64;                       // all threads keep at most this fraction of memory

Transport secured(FileDescriptor socket, const std::shared_ptr<const TlsContext>& tls) {
  if (tls == nullptr) return Transport(std::move(socket));
  const int number = socket.get();
  return {std::move(socket), std::make_unique<TlsSession>(tls, TlsRole::server, number)};
}

/// Returns false if memory ran out or the thread has ended; then the connection is closed.
bool hand_over(NewConnection made, Inbox& to) noexcept {
  try {
    return to.add(std::move(made));
  } catch (const std::bad_alloc&) {
    return false;
  }
}

std::unique_ptr<Connection> connect(Front& front, FileDescriptor socket, Protocol protocol) {
  Transport transport = secured(std::move(socket), front.credentials->tls_of(protocol));
  if constexpr (kBuiltWithGrpc) {
    if (protocol == Protocol::grpc) return std::make_unique<grpc::Connection>(front, std::move(transport));
  }
  return std::make_unique<http::Connection>(front, std::move(transport));
}

}  // namespace

FrontThread::FrontThread(Shared& shared, std::size_t number, std::vector<Listener> listeners)
    : shared_(shared),
      listeners_(std::move(listeners)),
      inbox_(shared.inboxes.emplace_back()),
      buffer_(kBufferBytes),
      front_{.shared = shared,
             .loop = loop_,
             .thread = number,
             .replies = shared.replies.emplace_back(),
             .inferences = shared.inferences.emplace_back(
                 shared.memory, std::min(kSpareMax, shared.memory.limit() / kSpareParts / shared.config.threads)),
             .memory = shared.inferences.back().budget(),
             .buffer = buffer_} {
  most_silent_.reserve(kMostSilentMax);
  for (const Listener& listener : listeners_) {
    on_accept_.emplace_back().act = [this, &listener] { accept(listener); };
  }
  on_wake_.act = [this] {
    static_cast<void>(inbox_.wake().clear());
    empty_inbox();
  };
  listen(true);
  loop_.add(inbox_.wake().get(), EPOLLIN, on_wake_);
}

FrontThread::~FrontThread() {
  wake();
  if (thread_.joinable()) thread_.join();
}

void FrontThread::adopt(FileDescriptor socket) {
  auto connection = std::make_unique<http::Connection>(front_, Transport(std::move(socket)));
  connection->keep_open();
  connections_.push_back(std::move(connection));
  inbox_.count(1);
  shared_.connections.fetch_add(1, std::memory_order_relaxed);
  shared_.connections_open.fetch_add(1, std::memory_order_relaxed);
}

void FrontThread::start() {
  thread_ = start_ready_thread([this] {
    ::pthread_setname_np(::pthread_self(), "headrace-wire");
    run();
  });
}

void FrontThread::run() {
  while (front_.models == nullptr) {
    try {
      take_news();
    } catch (const std::bad_alloc&) {
      std::this_thread::sleep_for(kCheckEvery);
    }
  }
  while (!shared_.stopping.load(std::memory_order_acquire)) {
    try {
      turn(next_turn(SteadyClock::now()));
    } catch (const std::exception&) {
      std::this_thread::sleep_for(kCheckEvery);  // out of memory: the work stays pending and is retried
    }
  }
  shared_.connections_open.fetch_sub(connections_.size() + inbox_.close(), std::memory_order_relaxed);
  most_silent_.clear();
  connections_.clear();
}

void FrontThread::turn(Time until) {
  loop_.wait(until);
  front_.now = SteadyClock::now();
  if (shared_.news.load(std::memory_order_acquire) != seen_.load(std::memory_order_relaxed)) take_news();
  for (const auto& asker : askers_) {
    if (!asker->idle()) asker->take_in();
  }
  if (retiring_) retire();
  front_.now = SteadyClock::now();
  const Time turns_end = front_.now + kTurnsFor;
  for (std::size_t left = front_.turns.size(); left > 0 && front_.now < turns_end; --left) {
    Turn* const turn = front_.turns.front();
    front_.turns.pop_front();
    turn->go_on();
    front_.now = SteadyClock::now();
  }
  const Time now = front_.now;
  const bool ends = shared_.draining.load(std::memory_order_acquire) && !listeners_.empty();
  if (ends || now - checked_at_ >= kCheckEvery) check(now);
  bury();
}

Time FrontThread::next_turn(Time now) const noexcept {
  if (!front_.turns.empty()) return now;
  Time next = connections_.empty() && (listening_ || listeners_.empty()) ? Time::max() : now + kCheckEvery;
  for (const auto& asker : askers_) next = std::min(next, asker->soonest());
  return next;
}

void FrontThread::take_news() {
  const std::uint64_t news = shared_.news.load(std::memory_order_acquire);
  {
    const std::lock_guard locked(shared_.publishing);
    askers_.reserve(askers_.size() + arriving_.size());
    std::ranges::move(arriving_, std::back_inserter(askers_));
    arriving_.clear();
    front_.models = shared_.published;  // the server keeps a replaced model alive, see retire()
    front_.credentials = shared_.credentials;
  }
  retiring_ = true;
  seen_.store(news, std::memory_order_release);
  for (const std::shared_ptr<ModelCall>& call : shared_.calls.take_ended(front_.thread)) {
    if (call->owner != nullptr) std::exchange(call->owner, nullptr)->call_ended(*call);
  }
}

void FrontThread::retire() noexcept {
  retiring_ = false;
  std::erase_if(askers_, [this](std::unique_ptr<Asker>& asker) {
    ServedModel& served = asker->served();
    if (front_.models->find(served.model.name) == &served) return false;
    if (!asker->idle()) {
      retiring_ = true;
      return false;
    }
    asker.reset();
    served.users.fetch_sub(1, std::memory_order_release);
    return true;
  });
}

void FrontThread::listen(bool on) {
  if (listening_ == on) return;
  for (const Listener& listener : listeners_) loop_.remove(listener.socket.get());  // and those of a failed call
  listening_ = false;
  if (!on) return;
  for (std::size_t i = 0; i < listeners_.size(); ++i) {
    loop_.add(listeners_[i].socket.get(), EPOLLIN, on_accept_[i]);
  }
  listening_ = true;
}

void FrontThread::accept(const Listener& listener) {
  for (int i = 0; i < kAcceptsMax; ++i) {
    FileDescriptor socket(::accept4(listener.socket.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!socket.valid()) {
      if (errno != EMFILE && errno != ENFILE && errno != ENOBUFS && errno != ENOMEM) return;
      if (close_most_silent()) continue;  // the limit of descriptors may be lower than that of connections
      return listen(false);               // for a while
    }
    if (!make_room()) {
      shared_.connections_refused.fetch_add(1, std::memory_order_relaxed);
      continue;
    }
    const int on = 1;
    ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    shared_.connections_open.fetch_add(1, std::memory_order_relaxed);
    Inbox& fewest = *std::ranges::min_element(shared_.inboxes, {}, &Inbox::connections);
    if (fewest.connections() >= inbox_.connections()) {
      inbox_.count(1);
      welcome({std::move(socket), listener.protocol});
    } else if (!hand_over({std::move(socket), listener.protocol}, fewest)) {
      shared_.connections_open.fetch_sub(1, std::memory_order_relaxed);
      shared_.connections_refused.fetch_add(1, std::memory_order_relaxed);
      return;
    }
  }
}

void FrontThread::welcome(NewConnection made) {
  try {
    connections_.emplace_back();  // reserves the element first, because a new connection may request a turn
    try {
      connections_.back() = connect(front_, std::move(made.socket), made.protocol);
    } catch (...) {
      connections_.pop_back();
      throw;
    }
    shared_.connections.fetch_add(1, std::memory_order_relaxed);
  } catch (const std::exception&) {
    inbox_.discount(1);
    shared_.connections_open.fetch_sub(1, std::memory_order_relaxed);
    shared_.connections_refused.fetch_add(1, std::memory_order_relaxed);
  }
}

void FrontThread::empty_inbox() {
  for (NewConnection& made : inbox_.take()) welcome(std::move(made));
}

bool FrontThread::make_room() noexcept {
  const std::uint64_t open = shared_.connections_open.load(std::memory_order_relaxed) - front_.over;
  const std::uint64_t adopted = shared_.config.watcher < 0 ? 0 : 1;
  if (open < shared_.config.connections_max + adopted) return true;
  return close_most_silent();
}

bool FrontThread::close_most_silent() noexcept {
  const auto is_silent = [](const Silent& one) { return one.connection->silent_since() == one.since; };
  while (!most_silent_.empty() && !is_silent(most_silent_.back())) most_silent_.pop_back();
  if (most_silent_.empty()) find_most_silent();
  if (most_silent_.empty()) return false;
  shared_.connections_refused.fetch_add(1, std::memory_order_relaxed);
  most_silent_.back().connection->close();
  most_silent_.pop_back();
  return true;
}

void FrontThread::find_most_silent() noexcept {
  const auto longer = [](const Silent& one, const Silent& other) { return one.since < other.since; };
  for (const auto& connection : connections_) {
    const std::optional<Time> since = connection->silent_since();
    if (!since) continue;
    if (most_silent_.size() == kMostSilentMax) {  // a heap: the shortest silence is at the front
      if (*since >= most_silent_.front().since) continue;
      std::ranges::pop_heap(most_silent_, longer);
      most_silent_.pop_back();
    }
    most_silent_.push_back({connection.get(), *since});  // room is reserved
    std::ranges::push_heap(most_silent_, longer);
  }
  std::ranges::sort(most_silent_, [](const Silent& one, const Silent& other) { return one.since > other.since; });
}

void FrontThread::check(Time now) {
  checked_at_ = now;
  if (shared_.draining.load(std::memory_order_acquire)) {
    for (const Listener& listener : listeners_) accept(listener);  // earlier connections are still answered
    listen(false);
    listeners_.clear();
  } else {
    listen(true);
  }
  for (const auto& connection : connections_) connection->check(now);
}

void FrontThread::bury() {
  if (std::exchange(front_.over, 0) == 0) return;
  const auto over = std::partition(connections_.begin(), connections_.end(),
                                   [](const auto& connection) { return !connection->over(); });
  std::erase_if(most_silent_, [](const Silent& one) { return one.connection->over(); });
  for (auto connection = over; connection != connections_.end(); ++connection) {
    std::erase(front_.turns, static_cast<Turn*>(connection->get()));
  }
  const auto ended = static_cast<std::uint64_t>(connections_.end() - over);
  inbox_.discount(ended);
  shared_.connections_open.fetch_sub(ended, std::memory_order_release);
  connections_.erase(over, connections_.end());
}

}  // namespace headrace::wire
