#include "measure/link_kernels.hpp"

#include <algorithm>

#include "measure/link_pattern.hpp"

namespace headrace::measure {

namespace {

constexpr std::uint32_t kThreads = 512;
/// Two blocks per multiprocessor, so that the kernels of both directions fit at once.
constexpr std::uint64_t kBlocksPerMultiprocessor = 2;

struct HoldGate {
  static constexpr const char* kName = "link::gate";
  template <class Group>
  HEADRACE_HD static void run(Group group, const std::uint32_t* word, std::uint32_t* expired, std::uint32_t ticket,
                              std::uint64_t bound_ns) {
    if (group.thread() != 0) return;
    const std::uint64_t start = group.clock_ns();
    // Pairs with the host's release in Gate::open(). Tickets only increase, so their difference shows which is later.
    while (static_cast<std::int32_t>(group.load(*word) - ticket) < 0) {
      if (group.clock_ns() - start > bound_ns) {
        group.store(*expired, ticket);
        return;
      }
      group.relax();
    }
  }
};

struct Fill {
  static constexpr const char* kName = "link::fill";
  template <class Group>
  HEADRACE_HD static void run(Group group, std::uint64_t* words, std::uint64_t count, std::uint64_t seed) {
    for (std::uint64_t i = group.thread(); i < count; i += group.thread_count()) words[i] = pattern(seed, i);
  }
};

struct Verify {
  static constexpr const char* kName = "link::verify";
  template <class Group>
  HEADRACE_HD static void run(Group group, const std::uint64_t* words, std::uint64_t count, std::uint64_t seed,
                              std::uint64_t* wrong) {
    std::uint64_t mine = 0;
    for (std::uint64_t i = group.thread(); i < count; i += group.thread_count()) {
      if (words[i] != pattern(seed, i)) ++mine;
    }
    if (mine != 0) group.fetch_add_relaxed_on_device(*wrong, mine);
  }
};

struct CopyQuads {
  static constexpr const char* kName = "link::copy";
  /// Four loads are in flight before the first store needs one.
  template <class Group>
  HEADRACE_HD static void run(Group group, Quad* to, const Quad* from, std::uint64_t count) {
    const std::uint64_t stride = group.thread_count();
    std::uint64_t i = group.thread();
    for (; i + 3 * stride < count; i += 4 * stride) {
      const Quad a = from[i];
      const Quad b = from[i + stride];
      const Quad c = from[i + 2 * stride];
      const Quad d = from[i + 3 * stride];
      to[i] = a;
      to[i + stride] = b;
      to[i + 2 * stride] = c;
      to[i + 3 * stride] = d;
    }
    for (; i < count; i += stride) to[i] = from[i];
  }
};

LaunchShape shape_for(Device device, std::uint64_t threads) {
  const auto most = static_cast<std::uint64_t>(device.properties().multiprocessor_count) * kBlocksPerMultiprocessor;
  const std::uint64_t blocks = std::clamp<std::uint64_t>((threads + kThreads - 1) / kThreads, 1, most);
  return {.blocks = static_cast<std::uint32_t>(blocks), .threads = kThreads};
}

}  // namespace

TypedKernel<const std::uint32_t*, std::uint32_t*, std::uint32_t, std::uint64_t> gate_kernel() {
  return make_kernel<HoldGate, const std::uint32_t*, std::uint32_t*, std::uint32_t, std::uint64_t>();
}
TypedKernel<std::uint64_t*, std::uint64_t, std::uint64_t> fill_pattern_kernel() {
  return make_kernel<Fill, std::uint64_t*, std::uint64_t, std::uint64_t>();
}
TypedKernel<const std::uint64_t*, std::uint64_t, std::uint64_t, std::uint64_t*> verify_kernel() {
  return make_kernel<Verify, const std::uint64_t*, std::uint64_t, std::uint64_t, std::uint64_t*>();
}
TypedKernel<Quad*, const Quad*, std::uint64_t> copy_kernel() {
  return make_kernel<CopyQuads, Quad*, const Quad*, std::uint64_t>();
}

LaunchShape copy_shape(Device device, std::size_t bytes) { return shape_for(device, bytes / sizeof(Quad) / 4); }
LaunchShape words_shape(Device device, std::size_t count) { return shape_for(device, count / 4); }

}  // namespace headrace::measure
