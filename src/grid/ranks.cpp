#include "headrace/grid/detail/ranks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <iterator>

#include "grid/digest.hpp"
#include "headrace/base/error.hpp"

namespace headrace::grid {

namespace {

constexpr int kExchangeTag = 0;  // links between parts use the tags from 1 on

}  // namespace

Result<std::vector<std::byte>> gather_on_all(Ranks& ranks, std::span<const std::byte> own) noexcept {
  const auto count = static_cast<std::size_t>(ranks.count());
  std::vector<std::byte> sent(own.begin(), own.end());
  std::vector<std::byte> all(count * own.size());
  std::vector<RankMessage> sends;
  std::vector<RankMessage> receives;
  for (std::size_t rank = 0; rank < count; ++rank) {
    std::byte* place = all.data() + rank * own.size();
    if (rank == static_cast<std::size_t>(ranks.rank())) {
      std::ranges::copy(own, place);
      continue;
    }
    const int other = static_cast<int>(rank);
    sends.push_back({.rank = other, .tag = kExchangeTag, .data = sent.data(), .bytes = sent.size()});
    receives.push_back({.rank = other, .tag = kExchangeTag, .data = place, .bytes = own.size()});
  }
  const Status exchanged = ranks.exchange(sends, receives);
  if (!exchanged) return exchanged.error();
  return all;
}

std::vector<std::byte> gather_for(Ranks& ranks, std::string_view doing, std::span<const std::byte> own) {
  Digest purpose;
  purpose.add(doing);
  const auto head = std::bit_cast<std::array<std::byte, sizeof(std::uint64_t)>>(purpose.value());
  std::vector<std::byte> message(head.begin(), head.end());
  message.insert(message.end(), own.begin(), own.end());
  const auto all = gather_on_all(ranks, message);
  throw_rank_failure(&ranks, doing);
  if (!all) throw_error(doing, all.error());
  std::vector<std::byte> found;
  for (auto its = all->begin(); its != all->end(); its += std::ssize(message)) {
    if (!std::equal(head.begin(), head.end(), its)) {
      const auto other = (its - all->begin()) / std::ssize(message);
      ranks.fail(fmt::format(
          "{}, while rank {} does something else; all ranks must make the same calls in the same order", doing, other));
      throw_rank_failure(&ranks, doing);
    }
    found.insert(found.end(), its + std::ssize(head), its + std::ssize(message));
  }
  return found;
}

void throw_rank_failure(const Ranks* ranks, std::string_view doing) {
  if (ranks == nullptr) return;
  const auto failure = ranks->failure();
  if (failure) throw SystemError(Errc::stopped, fmt::format("{}: {}", doing, *failure));
}

}  // namespace headrace::grid
