#include "ingest/builder/kernels.hpp"

#include <algorithm>

#include "headrace/device/device.hpp"
#include "ingest/builder/gather_body.hpp"

namespace headrace::ingest {

namespace {

constexpr std::uint32_t kWarp = 32;
constexpr std::uint32_t kThreads = 256;
/// Lines that a lane has in flight. Four blocks per multiprocessor then have 64 KiB of payload in flight.
constexpr std::uint32_t kInFlight = 4;
static_assert(kRoundBytes == kInFlight * kWarp * kLineBytes);
/// Most work-items of a CPU device that share a list.
constexpr std::uint32_t kItemsMax = 8;
constexpr std::uint32_t kPartsPerItem = 64;

/// The number of worker `own` of this block among all workers, and how many there are, if each block of each item has
/// `per_block`. Lists are short enough (kPartsMax) for 32 bits to count past their end.
template <class Group>
[[nodiscard]] HEADRACE_HD std::uint32_t worker(const Group& group, std::uint32_t per_block, std::uint32_t own) {
  return (group.item() * group.block_count() + group.block()) * per_block + own;
}
template <class Group>
[[nodiscard]] HEADRACE_HD std::uint32_t worker_count(const Group& group, std::uint32_t per_block) {
  return group.item_count() * group.block_count() * per_block;
}

struct GatherBody {
  static constexpr const char* kName = "ingest::gather";
  static constexpr int kThreadsMax = kThreads;
  static constexpr int kBlocksMin = 4;

  template <class Group>
  HEADRACE_HD static void run(const Group& group, const Part* parts, std::uint32_t count, std::uint32_t per_team,
                              DoneArgument done) {
    const std::uint32_t teams = group.size() / Group::kTeam;
    const std::uint32_t step = worker_count(group, teams) * per_team;
    for (std::uint32_t first = worker(group, teams, group.team()) * per_team; first < count; first += step) {
      const std::uint32_t here = count - first < per_team ? count - first : per_team;
      gather<kInFlight>(group, here, [&](std::uint32_t i) { return parts[first + i]; });
    }
    say_done(group, done);
  }
};

struct EvenBody {
  static constexpr const char* kName = "ingest::even";
  static constexpr int kThreadsMax = kThreads;
  static constexpr int kBlocksMin = 4;

  template <class Group>
  HEADRACE_HD static void run(const Group& group, EvenRuns runs, std::uint32_t per_team, DoneArgument done) {
    const std::uint32_t count = runs.parts;
    const std::uint32_t teams = group.size() / Group::kTeam;
    const std::uint32_t step = worker_count(group, teams) * per_team;
    for (std::uint32_t first = worker(group, teams, group.team()) * per_team; first < count; first += step) {
      const std::uint32_t here = count - first < per_team ? count - first : per_team;
      gather<kInFlight>(group, here, [&](std::uint32_t i) { return part_of(runs, first + i); });
    }
    say_done(group, done);
  }
};

struct SayBody {
  static constexpr const char* kName = "ingest::say";

  template <class Group>
  HEADRACE_HD static void run(const Group& group, DoneArgument done) {
    say_done(group, done);
  }
};

/// The naive version: one block per packet, with vector copies if both sides happen to be aligned alike.
struct BlockBody {
  static constexpr const char* kName = "ingest::block";
  static constexpr int kThreadsMax = kThreads;

  template <class Group>
  HEADRACE_HD static void run(const Group& group, const Part* parts, std::uint32_t count, std::uint32_t /*per_team*/,
                              DoneArgument done) {
    for (std::uint32_t i = worker(group, 1, 0); i < count; i += worker_count(group, 1)) copy(group, parts[i]);
    say_done(group, done);
  }

  template <class Group>
  HEADRACE_HD static void copy(const Group& group, const Part& part) {
    std::byte* const to = part.to();
    const std::byte* const from = part.from();
    const std::uint32_t bytes = part.bytes();
    std::uint32_t head = bytes;  // copied byte by byte
    std::uint32_t lines = 0;
    if ((reinterpret_cast<std::uintptr_t>(to) - reinterpret_cast<std::uintptr_t>(from)) % kLineBytes == 0) {
      const auto skew = static_cast<std::uint32_t>(-reinterpret_cast<std::uintptr_t>(to) % kLineBytes);
      head = skew < bytes ? skew : bytes;
      lines = (bytes - head) / kLineBytes;
    }
    const std::uint32_t tail = head + lines * kLineBytes;
    for (std::uint32_t i = group.rank(); i < lines; i += group.size()) {
      const std::uint32_t at = head + i * kLineBytes;
      store_line(to + at, load_line(from + at));
    }
    for (std::uint32_t i = group.rank(); i < head; i += group.size()) to[i] = from[i];
    for (std::uint32_t i = tail + group.rank(); i < bytes; i += group.size()) to[i] = from[i];
  }
};

template <Conversion Of>
struct Item;

template <std::uint32_t Bytes>
struct SwappedItem {
  static constexpr std::uint32_t kBytes = Bytes;
  static constexpr std::uint32_t kInFrame = Bytes;
  HEADRACE_HD static void convert(std::byte* to, const std::byte* from) {
    for (std::uint32_t b = 0; b < Bytes; ++b) to[b] = from[Bytes - 1 - b];
  }
};
template <>
struct Item<Conversion::swap2> : SwappedItem<2> {};
template <>
struct Item<Conversion::swap4> : SwappedItem<4> {};
template <>
struct Item<Conversion::swap8> : SwappedItem<8> {};

template <>
struct Item<Conversion::int8_to_float> {
  static constexpr std::uint32_t kBytes = 1;
  static constexpr std::uint32_t kInFrame = sizeof(float);
  HEADRACE_HD static void convert(std::byte* to, const std::byte* from) {
    *reinterpret_cast<float*>(to) = static_cast<float>(static_cast<std::int8_t>(*from));
  }
};

template <std::uint32_t Low>
struct ShortItem {
  static constexpr std::uint32_t kBytes = 2;
  static constexpr std::uint32_t kInFrame = sizeof(float);
  HEADRACE_HD static void convert(std::byte* to, const std::byte* from) {
    const auto bits = static_cast<std::uint16_t>(static_cast<std::uint32_t>(from[Low]) |
                                                 static_cast<std::uint32_t>(from[1 - Low]) << 8);
    *reinterpret_cast<float*>(to) = static_cast<float>(static_cast<std::int16_t>(bits));
  }
};
template <>
struct Item<Conversion::int16_to_float> : ShortItem<0> {};
template <>
struct Item<Conversion::int16_big_endian_to_float> : ShortItem<1> {};

template <Conversion Of>
struct ConvertBody {
  static constexpr const char* kName = "ingest::convert";
  static constexpr int kThreadsMax = kThreads;

  template <class Group>
  HEADRACE_HD static void run(const Group& group, const Part* parts, std::uint32_t count, std::uint32_t /*per_team*/,
                              DoneArgument done) {
    const std::uint32_t teams = group.size() / Group::kTeam;
    for (std::uint32_t i = worker(group, teams, group.team()); i < count; i += worker_count(group, teams)) {
      const Part part = parts[i];
      if (Item<Of>::kBytes > 1 && part.bytes() == 1) {
        if (group.team_rank() == 0) *part.to() = *part.from();
        continue;
      }
      for (std::uint32_t k = group.team_rank(); k < part.bytes() / Item<Of>::kBytes; k += Group::kTeam) {
        Item<Of>::convert(part.to() + std::size_t{k} * Item<Of>::kInFrame, part.from() + k * Item<Of>::kBytes);
      }
    }
    say_done(group, done);
  }
};

template <Conversion Of>
struct SeamBody {
  static constexpr const char* kName = "ingest::seams";
  static constexpr int kThreadsMax = kThreads;

  template <class Group>
  HEADRACE_HD static void run(const Group& group, std::byte* items, const std::uint32_t* which, std::uint32_t count) {
    for (std::uint32_t i = worker(group, group.size(), group.rank()); i < count;
         i += worker_count(group, group.size())) {
      std::byte* const to = items + std::size_t{which[i]} * Item<Of>::kInFrame;
      const std::byte from[2] = {to[0], to[1]};
      Item<Of>::convert(to, from);
    }
  }
};

template <Conversion Of>
[[nodiscard]] PartsKernel make_convert() {
  return make_kernel<ConvertBody<Of>, const Part*, std::uint32_t, std::uint32_t, DoneArgument>();
}

template <Conversion Of>
[[nodiscard]] TypedKernel<std::byte*, const std::uint32_t*, std::uint32_t> make_seam() {
  return make_kernel<SeamBody<Of>, std::byte*, const std::uint32_t*, std::uint32_t>();
}

[[nodiscard]] LaunchShape shape_of(Device device, std::uint64_t blocks, std::uint32_t count) {
  if (device.properties().host_cores) {
    return {.items = std::clamp((count + kPartsPerItem - 1) / kPartsPerItem, 1U, kItemsMax)};
  }
  return {.blocks = static_cast<std::uint32_t>(std::max<std::uint64_t>(blocks, 1)), .threads = kThreads};
}

}  // namespace

std::uint32_t parts_per_team(std::uint64_t bytes, std::uint32_t count) noexcept {
  return parts_of_team(bytes, count, bytes <= kShortBytes ? kRoundBytes : kTeamBytes);
}

PartsKernel gather_kernel() {
  return make_kernel<GatherBody, const Part*, std::uint32_t, std::uint32_t, DoneArgument>();
}

LaunchShape gather_shape(Device device, std::uint32_t count, std::uint32_t per_team) {
  const std::uint64_t teams = (std::uint64_t{count} + per_team - 1) / per_team;
  return shape_of(device, (teams + kThreads / kWarp - 1) / (kThreads / kWarp), count);
}

TypedKernel<EvenRuns, std::uint32_t, DoneArgument> even_kernel() {
  return make_kernel<EvenBody, EvenRuns, std::uint32_t, DoneArgument>();
}

TypedKernel<DoneArgument> say_kernel() { return make_kernel<SayBody, DoneArgument>(); }

PartsKernel block_kernel() { return make_kernel<BlockBody, const Part*, std::uint32_t, std::uint32_t, DoneArgument>(); }
LaunchShape block_shape(Device device, std::uint32_t count) { return shape_of(device, count, count); }

PartsKernel convert_kernel(Conversion conversion) {
  switch (conversion) {
    case Conversion::none: return gather_kernel();
    case Conversion::swap2: return make_convert<Conversion::swap2>();
    case Conversion::swap4: return make_convert<Conversion::swap4>();
    case Conversion::swap8: return make_convert<Conversion::swap8>();
    case Conversion::int8_to_float: return make_convert<Conversion::int8_to_float>();
    case Conversion::int16_to_float: return make_convert<Conversion::int16_to_float>();
    case Conversion::int16_big_endian_to_float: return make_convert<Conversion::int16_big_endian_to_float>();
  }
  return gather_kernel();
}

TypedKernel<std::byte*, const std::uint32_t*, std::uint32_t> seam_kernel(Conversion conversion) {
  return conversion == Conversion::int16_big_endian_to_float ? make_seam<Conversion::int16_big_endian_to_float>()
                                                             : make_seam<Conversion::int16_to_float>();
}

LaunchShape seam_shape(Device device, std::uint32_t count) {
  return shape_of(device, (std::uint64_t{count} + kThreads - 1) / kThreads, count);
}

}  // namespace headrace::ingest
