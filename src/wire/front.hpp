#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "base/budget.hpp"
#include "headrace/wire/server.hpp"
#include "wire/asker.hpp"
#include "wire/loop.hpp"
#include "wire/served_model.hpp"

namespace headrace::wire {

/// What all threads of a server share.
struct Shared {
  Shared(const ServerConfig& configured, std::vector<Model> served)
      : config(configured), models(std::move(served)), memory(config.memory_max) {}

  const ServerConfig config;
  const Models models;
  Budget memory;
  std::atomic<bool> draining{false};
  std::atomic<bool> stopping{false};
  std::atomic<std::uint64_t> connections{0};
  std::atomic<std::uint64_t> connections_open{0};
  std::atomic<std::uint64_t> connections_refused{0};
  std::atomic<std::uint64_t> requests{0};
  std::atomic<std::uint64_t> failed{0};
  std::atomic<std::uint64_t> refused{0};
};

/// What goes on without being woken, since others have their turn first.
class Turn {
 public:
  virtual void go_on() noexcept = 0;

 protected:
  ~Turn() = default;
};

/// What a connection uses of the thread that it belongs to.
struct Front {
  Shared& shared;
  Loop& loop;
  std::deque<Asker>& askers;      ///< By ServedModel::index.
  std::span<char> buffer;         ///< For what comes from a socket; each call of recv() may overwrite it.
  std::size_t over = 0;           ///< Connections that are to be destroyed.
  std::vector<Turn*> turns = {};  ///< Their go_on() is called soon, once.
};

}  // namespace headrace::wire
