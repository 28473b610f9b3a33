#include <string>
#include <string_view>
#include <utility>

#include "receiver_handle.hpp"

namespace nb = nanobind;

namespace headrace::python {

namespace {

template <class Of>
using Named = std::pair<const char*, std::uint64_t Of::*>;

using ingest::BuilderCounters;
using ingest::DatagramCounters;
using ingest::FollowCounters;
using ingest::FragmentCounters;
using ingest::FrameCounters;
using ingest::ParseResult;
using ingest::ReceiverCounters;
using ingest::SourceCounters;
using ingest::TcpCounters;

constexpr Named<SourceCounters> kSource[] = {
    {"packets", &SourceCounters::packets},       {"bytes", &SourceCounters::bytes},
    {"dropped", &SourceCounters::dropped},       {"truncated", &SourceCounters::truncated},
    {"left_out", &SourceCounters::left_out},     {"sent", &SourceCounters::sent},
    {"sent_bytes", &SourceCounters::sent_bytes},
};

constexpr Named<TcpCounters> kTcp[] = {
    {"packets", &TcpCounters::packets},
    {"not_tcp", &TcpCounters::not_tcp},
    {"signatures", &TcpCounters::signatures},
    {"no_room", &TcpCounters::no_room},
    {"segments", &TcpCounters::segments},
    {"bytes", &TcpCounters::bytes},
    {"duplicate_bytes", &TcpCounters::duplicate_bytes},
    {"unaccepted_bytes", &TcpCounters::unaccepted_bytes},
    {"out_of_order", &TcpCounters::out_of_order},
    {"gaps", &TcpCounters::gaps},
    {"late", &TcpCounters::late},
    {"duplicates", &TcpCounters::duplicates},
    {"out_of_window", &TcpCounters::out_of_window},
    {"old_timestamps", &TcpCounters::old_timestamps},
    {"missing_timestamps", &TcpCounters::missing_timestamps},
    {"bad_acknowledgements", &TcpCounters::bad_acknowledgements},
    {"probes", &TcpCounters::probes},
    {"challenges", &TcpCounters::challenges},
    {"limited", &TcpCounters::limited},
    {"acknowledgements", &TcpCounters::acknowledgements},
    {"window_updates", &TcpCounters::window_updates},
    {"zero_windows", &TcpCounters::zero_windows},
    {"resets_sent", &TcpCounters::resets_sent},
    {"retransmits", &TcpCounters::retransmits},
    {"sent_bytes", &TcpCounters::sent_bytes},
    {"opened", &TcpCounters::opened},
    {"finished", &TcpCounters::finished},
    {"reset", &TcpCounters::reset},
    {"timed_out", &TcpCounters::timed_out},
    {"refused", &TcpCounters::refused},
    {"half_open_lost", &TcpCounters::half_open_lost},
    {"syns_unanswered", &TcpCounters::syns_unanswered},
    {"connections", &TcpCounters::connections},
    {"waited", &TcpCounters::waited},
    {"left_silent", &TcpCounters::left_silent},
    {"silent_timed_out", &TcpCounters::silent_timed_out},
    {"closes_cut", &TcpCounters::closes_cut},
    {"connections_waiting", &TcpCounters::connections_waiting},
    {"connections_silent", &TcpCounters::connections_silent},
    {"unknown", &TcpCounters::unknown},
    {"round_trip_ns", &TcpCounters::round_trip_ns},
    {"round_trip_least_ns", &TcpCounters::round_trip_least_ns},
};

constexpr Named<DatagramCounters> kDatagrams[] = {
    {"packets", &DatagramCounters::packets},
    {"unparsed", &DatagramCounters::unparsed},
    {"malformed", &DatagramCounters::malformed},
    {"accepted", &DatagramCounters::accepted},
    {"bytes", &DatagramCounters::bytes},
    {"short_payloads", &DatagramCounters::short_payloads},
    {"reordered", &DatagramCounters::reordered},
    {"duplicates", &DatagramCounters::duplicates},
    {"late", &DatagramCounters::late},
    {"missing", &DatagramCounters::missing},
    {"far", &DatagramCounters::far},
    {"restarts", &DatagramCounters::restarts},
    {"no_space", &DatagramCounters::no_space},
    {"frames", &DatagramCounters::frames},
    {"frames_complete", &DatagramCounters::frames_complete},
    {"timeouts", &DatagramCounters::timeouts},
};

constexpr Named<FollowCounters> kFollow[] = {
    {"segments", &FollowCounters::segments},
    {"other", &FollowCounters::other},
    {"connections", &FollowCounters::connections},
    {"under_way", &FollowCounters::under_way},
    {"streams", &FollowCounters::streams},
    {"bytes", &FollowCounters::bytes},
    {"gaps", &FollowCounters::gaps},
    {"missing_bytes", &FollowCounters::missing_bytes},
    {"out_of_order", &FollowCounters::out_of_order},
    {"duplicates", &FollowCounters::duplicates},
    {"duplicate_bytes", &FollowCounters::duplicate_bytes},
    {"late_bytes", &FollowCounters::late_bytes},
    {"cut_bytes", &FollowCounters::cut_bytes},
    {"unproven_bytes", &FollowCounters::unproven_bytes},
    {"given_up", &FollowCounters::given_up},
    {"forgotten", &FollowCounters::forgotten},
};

constexpr Named<FragmentCounters> kFragments[] = {
    {"fragments", &FragmentCounters::fragments},   {"datagrams", &FragmentCounters::datagrams},
    {"duplicates", &FragmentCounters::duplicates}, {"overlapping", &FragmentCounters::overlapping},
    {"timed_out", &FragmentCounters::timed_out},   {"no_memory", &FragmentCounters::no_memory},
    {"malformed", &FragmentCounters::malformed},   {"incomplete", &FragmentCounters::incomplete},
};

constexpr Named<BuilderCounters> kBuilder[] = {
    {"pieces", &BuilderCounters::pieces},
    {"bytes", &BuilderCounters::bytes},
    {"parts", &BuilderCounters::parts},
    {"submissions", &BuilderCounters::submissions},
    {"link_copies", &BuilderCounters::link_copies},
    {"link_bytes", &BuilderCounters::link_bytes},
};

constexpr Named<FrameCounters> kFrames[] = {
    {"frames", &FrameCounters::frames},
    {"with_gaps", &FrameCounters::with_gaps},
    {"bytes", &FrameCounters::bytes},
    {"missing_bytes", &FrameCounters::missing_bytes},
};

constexpr Named<ReceiverCounters> kStreams[] = {
    {"streams_refused", &ReceiverCounters::streams_refused},
    {"memory_failures", &ReceiverCounters::memory_failures},
    {"replies_lost", &ReceiverCounters::replies_lost},
    {"deliveries_waiting", &ReceiverCounters::deliveries_waiting},
    {"window_least_bytes", &ReceiverCounters::window_least_bytes},
};

template <class Of, std::size_t Count>
nb::dict dict_of(const Of& counters, const Named<Of> (&names)[Count]) {
  nb::dict made;
  for (const auto& [name, member] : names) made[name] = counters.*member;
  return made;
}

}  // namespace

nb::dict counters_of(ReceiverHandle& handle) {
  const ReceiverCounters all = handle.receiver().counters();
  nb::dict made;
  made["source"] = dict_of(all.source, kSource);
  nb::dict tcp = dict_of(all.tcp, kTcp);
  std::uint64_t unparsed = 0;
  for (const std::uint64_t one : all.tcp.unparsed) unparsed += one;
  tcp["unparsed"] = unparsed;
  std::uint64_t bad_checksums = 0;
  for (const ParseResult wrong : {ParseResult::ip_checksum, ParseResult::tcp_checksum, ParseResult::udp_checksum}) {
    bad_checksums += all.tcp.unparsed[static_cast<std::size_t>(wrong)];
  }
  tcp["bad_checksums"] = bad_checksums;
  made["tcp"] = tcp;
  made["datagrams"] = dict_of(all.datagrams, kDatagrams);
  nb::dict follow = dict_of(all.follow, kFollow);
  const auto unread = [&](std::initializer_list<ParseResult> reasons) {
    std::uint64_t count = 0;
    for (const ParseResult why : reasons) count += all.follow.unread[static_cast<std::size_t>(why)];
    return count;
  };
  follow["bad_checksums"] = unread({ParseResult::ip_checksum, ParseResult::tcp_checksum, ParseResult::udp_checksum});
  follow["malformed"] =
      unread({ParseResult::malformed, ParseResult::truncated, ParseResult::snapped, ParseResult::fragment});
  follow["unsupported"] = unread({ParseResult::arp, ParseResult::not_ip, ParseResult::vlan_depth,
                                  ParseResult::extension, ParseResult::routing, ParseResult::protocol});
  made["follow"] = follow;
  made["fragments"] = dict_of(all.fragments, kFragments);
  nb::dict refused;
  for (std::uint32_t i = 1; i < ingest::kParseResults; ++i) {
    const std::string_view name = to_string(static_cast<ParseResult>(i));
    refused[nb::str(name.data(), name.size())] = all.refused[i];
  }
  made["refused"] = refused;
  made["builder"] = dict_of(all.builder, kBuilder);
  made["frames"] = dict_of(all.frames, kFrames);
  nb::dict streams = dict_of(all, kStreams);
  streams["open_streams"] = all.open_streams;
  made["streams"] = streams;
  return made;
}

}  // namespace headrace::python
