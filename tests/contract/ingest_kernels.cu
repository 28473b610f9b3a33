#include "tests/contract/ingest_kernels.hpp"

#include "headrace/ingest/detail/framing.hpp"
#include "ingest/datagram_packet.hpp"

namespace headrace::ingest::testing {

namespace {

struct TcpSteps {
  static constexpr const char* kName = "test::tcp_steps";
  static constexpr int kThreadsMax = 32;
  template <class Group>
  HEADRACE_HD static void run(Group group, TcpView view, const std::byte* ring, const Step* steps, std::uint32_t count,
                              Output* all, Filled* after) {
    if (group.thread() != 0) return;
    constexpr std::uint32_t kEventsMax = 64;
    Output& filled = *all;
    for (std::uint32_t i = 0; i < count; ++i) {
      Output output;
      output.pieces = filled.pieces + filled.piece_count;
      output.replies = filled.replies + filled.reply_count;
      output.events = filled.events + filled.event_count;
      output.pieces_max = steps[i].pieces_max;
      output.replies_max = steps[i].replies_max;
      output.events_max = kEventsMax;
      run_step(view, ring, output, steps[i]);
      filled.piece_count += output.piece_count;
      filled.reply_count += output.reply_count;
      filled.event_count += output.event_count;
      after[i] = {filled.piece_count, filled.reply_count, filled.event_count};
    }
  }
};

struct Datagrams {
  static constexpr const char* kName = "test::datagrams";
  static constexpr int kThreadsMax = 32;
  template <class Group>
  HEADRACE_HD static void run(Group group, DatagramView view, const std::byte* ring, const Packet* packets,
                              std::uint32_t count, DatagramOutput* output) {
    if (group.thread() != 0) return;
    constexpr std::uint64_t kStep = 1000;
    for (std::uint32_t i = 0; i < count; ++i) {
      DatagramSequencer sequencer(view, ring, *output, (i + 1) * kStep);
      sequencer.tick();
      DatagramRun run;
      if (find_datagrams(ring, packets[i], Layer::ip, view.shared->config, run) != ParseResult::ok) continue;
      (void)sequencer.take(run.at, run.length, false);
    }
    (void)DatagramSequencer(view, ring, *output, (count + 1) * kStep).finish();
  }
};

struct Messages {
  static constexpr const char* kName = "test::messages";
  static constexpr int kThreadsMax = 32;
  template <class Group>
  HEADRACE_HD static void run(Group group, LengthPrefix prefix, const std::byte* stream, std::uint64_t length,
                              std::uint32_t part, Message* messages, std::uint32_t* count) {
    if (group.thread() != 0) return;
    MessageFraming framing(prefix);
    std::uint32_t found = 0;
    for (std::uint64_t at = 0; at < length; at += part) {
      while (framing.next(stream + at, at, lesser(part, length - at), messages[found])) ++found;
    }
    *count = found;
  }
};

}  // namespace

TypedKernel<TcpView, const std::byte*, const Step*, std::uint32_t, Output*, Filled*> tcp_steps_kernel() {
  return make_kernel<TcpSteps, TcpView, const std::byte*, const Step*, std::uint32_t, Output*, Filled*>();
}

TypedKernel<DatagramView, const std::byte*, const Packet*, std::uint32_t, DatagramOutput*> datagrams_kernel() {
  return make_kernel<Datagrams, DatagramView, const std::byte*, const Packet*, std::uint32_t, DatagramOutput*>();
}

TypedKernel<LengthPrefix, const std::byte*, std::uint64_t, std::uint32_t, Message*, std::uint32_t*> messages_kernel() {
  return make_kernel<Messages, LengthPrefix, const std::byte*, std::uint64_t, std::uint32_t, Message*,
                     std::uint32_t*>();
}

}  // namespace headrace::ingest::testing
