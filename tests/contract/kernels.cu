#include "tests/contract/kernels.hpp"

namespace headrace::testing {

namespace {

struct Add {
  static constexpr const char* kName = "test::add";
  template <class Group>
  HEADRACE_HD static void run(Group group, std::uint32_t* words, std::uint32_t count, std::uint32_t by) {
    for (std::uint32_t i = group.thread(); i < count; i += group.thread_count()) words[i] += by;
  }
};

struct EightArguments {
  static constexpr const char* kName = "test::eight_arguments";
  template <class Group>
  HEADRACE_HD static void run(Group group, std::uint64_t* out, std::uint8_t a, std::uint16_t b, std::uint32_t c,
                              std::uint64_t d, float e, double f, Wide g) {
    if (group.thread() != 0) return;
    out[0] = a;
    out[1] = b;
    out[2] = c;
    out[3] = d;
    out[4] = static_cast<std::uint64_t>(e);
    out[5] = static_cast<std::uint64_t>(f);
    out[6] = 0;
    for (const std::uint64_t word : g.words) out[6] = out[6] * 31 + word;
  }
};

struct Items {
  static constexpr const char* kName = "test::items";
  template <class Group>
  HEADRACE_HD static void run(Group group, std::uint32_t* seen, std::uint32_t stride) {
    if (group.thread() == 0) seen[group.item() * stride] += group.item() + 1;
    if (group.thread() == 0) seen[group.item() * stride + 1] = group.item_count();
  }
};

struct GroupFunctions {
  static constexpr const char* kName = "test::group_functions";
  template <class Group>
  HEADRACE_HD static void run(Group group, const std::uint64_t* values, GroupReport* reports) {
    const std::uint64_t value = values[group.thread()];
    GroupReport report;
    report.rank = group.rank();
    report.size = group.size();
    report.block = group.block();
    report.block_count = group.block_count();
    report.thread_count = group.thread_count();
    report.sum = group.sum(value);
    report.before = group.sum_before(value, report.total);
    report.broadcast = group.broadcast(static_cast<std::uint32_t>(value));
    report.any = group.any(group.rank() + 1 == group.size() && value % 2 != 0) ? 1 : 0;
    reports[group.thread()] = report;
  }
};

struct Echo {
  static constexpr const char* kName = "test::echo";
  template <class Group>
  HEADRACE_HD static void run(Group group, MailboxView boxes, std::uint32_t words) {
    const std::uint32_t box = group.block();
    std::uint32_t served = 0;
    while (true) {
      const std::uint32_t sequence = boxes.wait(group, box, served);
      if (sequence == MailboxView::kStopped) return;
      const auto* request = reinterpret_cast<const std::uint32_t*>(boxes.request(box));
      auto* answer = reinterpret_cast<std::uint32_t*>(boxes.answer(box));
      for (std::uint32_t i = group.rank(); i < words; i += group.size()) answer[i] = request[i] + 1;
      boxes.reply(group, box, sequence);
      served = sequence;
    }
  }
};

template <class View>
struct TeamEcho {
  static constexpr const char* kName = "test::team_echo";
  template <class Group>
  HEADRACE_HD static void run(Group group, View boxes, std::uint32_t words) {
    const std::uint32_t box = group.item();
    std::uint32_t served = 0;
    boxes.enter(group);
    while (true) {
      const std::uint32_t sequence = boxes.wait(group, box, served);
      if (sequence == View::kStopped) return;
      const auto* request = reinterpret_cast<const std::uint32_t*>(boxes.request(box));
      auto* answer = reinterpret_cast<std::uint32_t*>(boxes.answer(box));
      for (std::uint32_t i = group.thread(); i < words; i += group.thread_count()) answer[i] = request[i] + 1;
      boxes.reply(group, box, sequence);
      served = sequence;
    }
  }
};

}  // namespace

TypedKernel<MailboxView, std::uint32_t> team_echo_kernel() {
  return make_kernel<TeamEcho<MailboxView>, MailboxView, std::uint32_t>();
}
TypedKernel<BarrierMailboxView, std::uint32_t> team_echo_barrier_kernel() {
  return make_kernel<TeamEcho<BarrierMailboxView>, BarrierMailboxView, std::uint32_t>();
}

TypedKernel<std::uint32_t*, std::uint32_t, std::uint32_t> add_kernel() {
  return make_kernel<Add, std::uint32_t*, std::uint32_t, std::uint32_t>();
}

TypedKernel<std::uint64_t*, std::uint8_t, std::uint16_t, std::uint32_t, std::uint64_t, float, double, Wide>
eight_arguments_kernel() {
  return make_kernel<EightArguments, std::uint64_t*, std::uint8_t, std::uint16_t, std::uint32_t, std::uint64_t, float,
                     double, Wide>();
}

TypedKernel<std::uint32_t*, std::uint32_t> items_kernel() {
  return make_kernel<Items, std::uint32_t*, std::uint32_t>();
}

TypedKernel<const std::uint64_t*, GroupReport*> group_kernel() {
  return make_kernel<GroupFunctions, const std::uint64_t*, GroupReport*>();
}

TypedKernel<MailboxView, std::uint32_t> echo_kernel() { return make_kernel<Echo, MailboxView, std::uint32_t>(); }

}  // namespace headrace::testing
