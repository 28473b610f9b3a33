#include "fetch/request.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/names.hpp"
#include "fetch/arena.hpp"
#include "headrace/base/error.hpp"
#include "headrace/device/topology.hpp"

namespace headrace::fetch {

namespace {

constexpr auto kModes = names_of<FetchMode>("a fetch mode", {{FetchMode::async, "async"}, {FetchMode::sync, "sync"}});
constexpr auto kSteps =
    names_of<Step>("a step of a fetch", {{Step::read, "read"}, {Step::decode, "decode"}, {Step::transfer, "transfer"}});

constexpr std::uint32_t kThreadsDefault = 16;
/// For a read of this many bytes, the cost of the call is negligible.
constexpr std::size_t kPieceBytes = 4 * kMiB;
/// Pieces per thread, if possible, so that faster threads can take more of them.
constexpr std::size_t kPiecesLeast = 4;

}  // namespace

std::string_view to_string(FetchMode mode) noexcept { return kModes.of(mode); }
FetchMode parse_fetch_mode(std::string_view text) { return kModes.parse(text); }
std::string_view to_string(Step step) noexcept { return kSteps.of(step); }

FetchRequest checked_request(const Source& source, FetchRequest request) {
  if (source.closed()) throw UsageError("the table has been closed", Errc::stopped);
  if (request.columns.empty()) throw UsageError("a fetch needs at least one column");
  for (const std::uint32_t column : request.columns) {
    const std::size_t count = source.columns().size();
    const bool has_validity = source.columns()[column % count].type.id == Type::dictionary;
    if (column >= (has_validity ? 2 * count : count)) {
      throw UsageError(
          fmt::format("there is no column {}: the source has {} columns", column, source.columns().size()));
    }
  }
  auto columns = request.columns;
  std::ranges::sort(columns);
  if (std::ranges::adjacent_find(columns) != columns.end()) throw UsageError("a fetch must not name a column twice");
  if (request.fragments.empty()) {
    request.fragments.resize(source.fragments().size());
    std::iota(request.fragments.begin(), request.fragments.end(), 0U);
  }
  for (const std::uint32_t fragment : request.fragments) {
    if (fragment >= source.fragments().size()) {
      throw UsageError(
          fmt::format("there is no fragment {}: the source has {} fragments", fragment, source.fragments().size()));
    }
  }
  if (request.to == Level::disk) throw UsageError("a fetch goes to level 'cpu' or 'device', not 'disk'");
  if (request.options.threads > kThreadsMost) {
    throw UsageError(fmt::format("a fetch has at most {} threads, not {}", kThreadsMost, request.options.threads));
  }
  if (request.options.flush_bytes == 0) throw UsageError("a fetch's flush_bytes must be above 0");
  if (request.options.threads == 0) {
    request.options.threads =
        std::clamp(static_cast<std::uint32_t>(Topology::machine().core_count()), 1U, kThreadsDefault);
  }
  return request;
}

Chunk chunk_of(const FetchRequest& request, std::size_t number) noexcept {
  return {.fragment = request.fragments[number / request.columns.size()],
          .column = request.columns[number % request.columns.size()]};
}

std::vector<Piece> cut_pieces(const Source& source, const FetchRequest& request, Piece numbers) {
  const std::size_t wanted = kPiecesLeast * request.options.threads;
  const std::size_t most =
      request.options.mode == FetchMode::sync ? 1 : std::max<std::size_t>(numbers.size() / wanted, 1);
  std::vector<Piece> pieces;
  std::size_t first = 0;
  std::size_t bytes = 0;
  for (std::size_t i = 0; i <= numbers.size(); ++i) {
    const std::size_t more = i < numbers.size() ? source.read_bytes(chunk_of(request, numbers[i])) : 0;
    const bool apart = i == numbers.size() || i - first >= most || bytes + more > kPieceBytes ||
                       chunk_of(request, numbers[i]).fragment != chunk_of(request, numbers[first]).fragment;
    if (apart && i > first) {
      pieces.push_back(numbers.subspan(first, i - first));
      first = i;
      bytes = 0;
    }
    bytes += more;
  }
  return pieces;
}

}  // namespace headrace::fetch
