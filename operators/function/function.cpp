#include "headrace/operators/function.hpp"

#include <atomic>
#include <utility>

#include <fmt/format.h>

#include "headrace/base/error.hpp"

namespace headrace::operators {

namespace {

/// What an engine keeps of a function.
struct Loaded {
  std::shared_ptr<const void> owner;
  std::atomic<std::uint32_t> failed{0};
};

struct Function {
  static constexpr const char* kName = "function";
  static constexpr bool kAnswersInline = true;

  using Query = std::byte;
  using Answer = std::byte;
  struct State {
    AnswerFunction function;
    const void* state;
    std::atomic<std::uint32_t>* failed;
  };

  template <class Group>
  static void answer(Group group, const State& state, const Query* query, Answer* answer) {
    if (state.function(state.state, query, answer, group.block(), group.block_count()) == 0) return;
    state.failed->store(1, std::memory_order_release);  // before the answer is published
  }
};

}  // namespace

serve::Operator function(FunctionOptions options) {
  if (options.function == nullptr) throw UsageError(fmt::format("operator {}: there is no function", options.name));
  if (options.query_bytes == 0 || options.answer_bytes == 0) {
    throw UsageError(fmt::format("operator {}: a query has {} bytes and an answer {}, but both have at least one",
                                 options.name, options.query_bytes, options.answer_bytes));
  }
  const auto load = [name = options.name, call = options.function, state = options.state,
                     owner = std::move(options.owner)](Device device) {
    if (!device.properties().host_cores) {
      throw DeviceError(Errc::not_supported,
                        fmt::format("operator {} is a function of the host and runs on CPU devices only: choose "
                                    "device cpu, not {}",
                                    name, device.name()));
    }
    const auto loaded = std::make_shared<Loaded>();
    loaded->owner = owner;
    serve::LoadedState made = serve::make_state(Function::State{call, state, &loaded->failed}, loaded);
    made.failed = &loaded->failed;
    return made;
  };
  serve::Operator op = serve::make_operator<Function>({.blocks = 1, .threads = 1}, load, std::move(options.sample),
                                                      options.query_bytes, options.answer_bytes);
  op.name = std::move(options.name);
  op.answer_type = std::move(options.answer_type);
  return op;
}

}  // namespace headrace::operators
