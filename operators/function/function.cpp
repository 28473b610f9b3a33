#include "headrace/operators/function.hpp"

#include <fmt/format.h>

#include <atomic>
#include <utility>

#include "headrace/base/error.hpp"
#include "operators/function/function_state.hpp"
#include "operators/function/linked_function.hpp"

namespace headrace::operators {

namespace {

/// The state of a function that an engine keeps.
struct LoadedFunction {
  std::shared_ptr<const void> owner;
  std::atomic<std::uint32_t> failed{0};
};

struct Function {
  static constexpr const char* kName = "function";
  static constexpr bool kAnswersInline = true;

  using Query = std::byte;
  using Answer = std::byte;
  using State = FunctionState;

  template <class Group>
  static void answer(Group group, const State& state, const Query* query, Answer* answer) {
    if (state.function(state.state, query, answer, group.block(), group.block_count()) == 0) return;
    state.failed->store(1, std::memory_order_release);  // before the answer is published
  }
};

UsageError no_function(const FunctionOptions& options) {
  return UsageError(fmt::format("operator {} has no function", options.name));
}

void require_sound(const FunctionOptions& options) {
  constexpr std::uint32_t kThreadsMost = 1024;
  if (options.function == nullptr && !options.make_function) throw no_function(options);
  if (options.query_bytes == 0 || options.answer_bytes == 0) {
    throw UsageError(fmt::format("operator {}: a query has {} bytes and an answer {}, but both need at least one",
                                 options.name, options.query_bytes, options.answer_bytes));
  }
  if (options.blocks == 0 || options.threads == 0 || options.threads > kThreadsMost) {
    throw UsageError(fmt::format(
        "operator {}: {} blocks of {} threads are not possible: it needs at least 1 block of 1 to {} threads",
        options.name, options.blocks, options.threads, kThreadsMost));
  }
}

/// The state on a CPU device.
serve::LoadedState load_on_host(const FunctionOptions& options) {
  for (const FunctionArray& array : options.arrays) {
    if (!array.cuda) continue;
    throw DeviceError(Errc::not_supported,
                      fmt::format("operator {}: {} lies in the memory of cuda:{} and cannot be read on a CPU device",
                                  options.name, array.name, *array.cuda));
  }
  const AnswerFunction function = options.function != nullptr ? options.function : options.make_function();
  if (function == nullptr) throw no_function(options);
  const auto loaded = std::make_shared<LoadedFunction>();
  loaded->owner = options.owner;
  serve::LoadedState made = serve::make_state(FunctionState{function, options.state, &loaded->failed, {}}, loaded);
  made.failed = &loaded->failed;
  return made;
}

}  // namespace

serve::Operator function(FunctionOptions options) {
  require_sound(options);
  const LaunchShape shape{.blocks = options.blocks, .threads = options.threads};
  const auto kept = std::make_shared<const FunctionOptions>(std::move(options));
  std::shared_ptr<LinkedFunction> linked;
  if (kept->code) linked = std::make_shared<LinkedFunction>(kept->name, kept->arrays, kept->code);
  const auto load = [kept, linked](Device device) {
    if (device.properties().host_cores) return load_on_host(*kept);
    if (linked) return linked->load(device, kept->owner);
    throw DeviceError(
        Errc::not_supported,
        fmt::format("operator {} is a host function and runs on CPU devices only; choose device cpu, not {}",
                    kept->name, device.name()));
  };
  serve::Operator op = serve::make_operator<Function>(shape, load, kept->sample, kept->query_bytes, kept->answer_bytes);
  op.name = kept->name;
  op.answer_type = kept->answer_type;
  if (linked) {
    op.link = [linked](serve::Operator& to, Device device, std::span<const serve::KernelMember> kernels) {
      if (!device.properties().host_cores) linked->link(to, device, kernels);
    };
  }
  return op;
}

}  // namespace headrace::operators
