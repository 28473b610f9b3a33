#include "tests/ingest_sender.hpp"
#include "tests/sanitizers.hpp"

/// Arbitrary segments, checked against a plain map of bytes.
namespace headrace::ingest::testing {
namespace {

struct Case {
  const char* name;
  Weather weather;
};

class TcpProperty : public ::testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(
    Weather, TcpProperty,
    ::testing::Values(Case{"Fair", {}}, Case{"Loss", {.lost = 30}}, Case{"Duplicates", {.doubled = 40}},
                      Case{"Reordering", {.overtaken = 80}}, Case{"Corruption", {.corrupted = 20}},
                      Case{"Strays", {.stray = 30}}, Case{"Answers", {.said = 5}},
                      Case{"LostAnswers", {.lost = 30, .doubled = 10, .overtaken = 40, .said = 20}},
                      Case{"All",
                           {.lost = 10, .doubled = 10, .overtaken = 50, .corrupted = 5, .stray = 10, .said = 5}}),
    [](const auto& one) { return std::string(one.param.name); });

TEST_P(TcpProperty, EveryByteOnceAndNothingElse) {
  for (std::uint32_t seed = 0; seed < headrace::testing::rounds(24); ++seed) {
    SCOPED_TRACE(seed);
    TcpConfig config = test_config((seed * 7919) % 20'000);
    config.window_bytes_max = seed % 3 == 0 ? 30'000 : 16 << 20;
    config.challenges_per_second = seed % 2 == 0 ? 10 : 1'000'000;
    Receiver receiver(config);
    Opening opening{.initial = 0U - 1 - seed * 3000, .scale = 7, .sack = seed % 4 != 1};
    if (seed % 3 == 1) opening.scale.reset();
    if (seed % 2 == 1) opening.timestamp = 0U - seed * 20;
    ArbitrarySender sender(receiver, seed, GetParam().weather, 20'000 + 4000 * (seed % 16), opening,
                           {.version = seed % 2 == 0 ? 4U : 6U});
    sender.run();
    if (HasFatalFailure()) return;
    const TcpCounters& counters = receiver.counters();
    EXPECT_EQ(counters.no_room, 0U);
    EXPECT_EQ(counters.finished, 1U);
    EXPECT_EQ(counters.opened, 1U);
    std::uint64_t bytes = 0;
    for (const Piece& piece : receiver.all_pieces) bytes += piece.length;
    EXPECT_EQ(counters.bytes, bytes);
  }
}

// The stream's 64-bit offset continues after sequence numbers have wrapped several times.
TEST(TcpLong, OffsetsGoOnWhereSequenceNumbersWrap) {
  TcpConfig config = test_config(~std::uint64_t{0} >> 1);
  config.window_bytes_max = 1 << 30 >> 1;
  std::vector<std::uint64_t> memory(tcp_state_bytes(1, config) / 8 + 8);
  const TcpView view = make_tcp_state(memory.data(), 1, config);
  Piece pieces[4];
  Reply replies[8];
  Event events[8];
  std::uint64_t now = 1;
  Output output{pieces, replies, events, 4, 8, 8};
  const Bytes syn = tcp_packet({}, {.sequence = 41, .flags = kSyn, .options = syn_options(1460, 14, true)});
  TcpSequencer(view, syn.data(), output, now).receive({.length = static_cast<std::uint32_t>(syn.size())}, Layer::ip);
  ASSERT_EQ(output.reply_count, 1U);
  const std::uint32_t acknowledgement = read_answer(replies[0]).sequence() + 1;
  std::uint64_t offset = 0;
  while (offset < (std::uint64_t{3} << 32)) {
    Headers headers;
    headers.flow = view.requests[0].flow;
    headers.payload_length = 400'000'000;  // pretends that so much arrived: nothing reads it
    headers.sequence = 42 + static_cast<std::uint32_t>(offset);
    headers.acknowledgement = acknowledgement;
    headers.window = 65535;
    headers.flags = kAck;
    output.clear();
    TcpSequencer sequencer(view, nullptr, output, now++);
    sequencer.receive(Packet{.segment_bytes = 1448}, ParseResult::ok, headers);
    sequencer.flush();
    ASSERT_EQ(output.piece_count, 1U);
    ASSERT_EQ(pieces[0].stream_offset, offset);
    ASSERT_EQ(output.reply_count, 1U);
    offset += pieces[0].length;
    ASSERT_EQ(read_answer(replies[0]).acknowledgement(), 42 + static_cast<std::uint32_t>(offset));
  }
}

}  // namespace
}  // namespace headrace::ingest::testing
