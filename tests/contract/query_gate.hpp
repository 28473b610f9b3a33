#pragma once

#include <atomic>
#include <cstdint>

#include "headrace/serve/operator.hpp"
#include "operators/sample.hpp"

namespace headrace::testing {

/// Holds the queries of gated_operator() until it is opened. CPU devices only.
class QueryGate {
 public:
  QueryGate() = default;
  QueryGate(const QueryGate&) = delete;
  QueryGate& operator=(const QueryGate&) = delete;

  void open() {
    open_.store(true);
    open_.notify_all();
  }
  /// Waits until a query is at the gate.
  void wait_until_entered() { entered_.wait(false); }
  [[nodiscard]] bool entered() const { return entered_.load(); }
  void pass() {
    entered_.store(true);
    entered_.notify_all();
    open_.wait(false);
  }

 private:
  std::atomic<bool> open_{false};
  std::atomic<bool> entered_{false};
};

/// Answers a query with itself once the gate is open.
struct Gated {
  static constexpr const char* kName = "gated";
  using Query = std::uint64_t;
  using Answer = std::uint64_t;
  struct State {
    QueryGate* gate;
  };

  template <class Group>
  static void answer(Group, const State& state, const Query* query, Answer* answer) {
    state.gate->pass();
    *answer = *query;
  }
};

inline serve::Operator gated_operator(QueryGate& gate) {
  return serve::make_operator<Gated>(
      {}, [&gate](Device) { return serve::make_state(Gated::State{&gate}); },
      [](std::uint64_t index, std::byte* query) { operators::random_bytes(index, query, sizeof(Gated::Query)); });
}

}  // namespace headrace::testing
