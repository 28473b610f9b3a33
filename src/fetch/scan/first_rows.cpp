#include "fetch/scan/first_rows.hpp"

#include <algorithm>

#include "fetch/scan/run.hpp"
#include "headrace/base/detail/bytes.hpp"
#include "headrace/base/error.hpp"

namespace headrace::fetch {

namespace {

/// Beyond, ordering what may be among them costs as much as ordering all.
constexpr std::int64_t kLimitMax = std::int64_t{1} << 18;
/// The same, as a share of all rows.
constexpr std::int64_t kRowsPerLimit = 8;
/// Rows that may be among the first, at once: so many that a pass of a table is few launches, and what they take.
constexpr std::int64_t kRoomMax = std::int64_t{1} << 20;
constexpr std::size_t kRoomBytes = 64 * kMiB;
constexpr std::uint32_t kTilesFirst = 16;

/// How many rows of so many values have room: those that fit, but at least those of a few tiles and twice the limit.
std::int64_t room_for(std::size_t values, std::int64_t limit) {
  const auto fitting = static_cast<std::int64_t>(kRoomBytes / (values * (sizeof(std::int64_t) + 1)));
  const std::int64_t least = std::max<std::int64_t>(kTilesFirst * kTileRows, 2 * limit);
  return std::max(std::min(fitting, kRoomMax), least);
}

/// How many tiles are run at a time.
class Pace {
 public:
  Pace(std::int64_t limit, std::int64_t room)
      : limit_(limit), room_(room), safe_(static_cast<std::uint32_t>(room / kTileRows)) {
    const std::int64_t some = 4 * limit / kTileRows + 1;
    tiles_ = std::min(safe_, std::max(kTilesFirst, static_cast<std::uint32_t>(some)));
  }
  [[nodiscard]] std::uint32_t tiles() const noexcept { return tiles_; }
  /// There was no room for their rows. There always is for those of so few tiles.
  void overflowed() noexcept { tiles_ = safe_; }
  /// `seen` tiles have run so far, and the last of them added so many rows.
  void went_on(std::uint32_t seen, std::int64_t rows, bool bounded) noexcept {
    if (!bounded) {
      tiles_ = safe_;
    } else if (rows > room_ / 4) {  // rows come in an order that is bad for us
      tiles_ = std::max(safe_, tiles_ / 2);
    } else {
      // If rows come in no order, the next tiles add as many as take a quarter of the room.
      const std::int64_t more = std::int64_t{seen} * std::max<std::int64_t>(room_ / (4 * limit_), 1);
      tiles_ = static_cast<std::uint32_t>(std::min<std::int64_t>(more, UINT32_MAX / 2));
    }
  }

 private:
  std::int64_t limit_;
  std::int64_t room_;
  std::uint32_t safe_;
  std::uint32_t tiles_ = 0;
};

}  // namespace

std::optional<Compiled> compile_first_rows(const TableView& table, const Query& query, CompileOptions options) {
  if (query.order.empty() || query.order.size() > kOrderKeysMax || query.limit < 1 || query.limit > kLimitMax ||
      query.limit > table.rows() / kRowsPerLimit) {
    return {};
  }
  options.bounded = true;
  try {
    return compile(table, query, options);
  } catch (const UsageError&) {
    return {};  // what is wrong with the query shows without a bound; a program that is too long may fit then
  }
}

ScanResult scan_first_rows(StreamRef stream, const TableView& table, const Query& query, const Compiled& compiled) {
  Run run(stream, table, compiled);
  ScanResult result{.columns = {}, .report = {.groups = "none", .read_bytes = run.read_bytes()}};
  const std::int64_t room = room_for(compiled.output_count, query.limit);
  run.prepare_first(query.order, query.limit, room);
  Pace pace(query.limit, room);
  std::int64_t kept = 0;
  for (std::uint32_t tile = 0; tile < run.tiles();) {
    const std::uint32_t end = tile + std::min(pace.tiles(), run.tiles() - tile);
    const std::int64_t rows = run.append_tiles(tile, end, result.report);
    if (rows > query.limit + room) {
      pace.overflowed();
      continue;
    }
    if (rows > kept) run.keep_first(rows, result.report);
    pace.went_on(end, rows - kept, rows >= query.limit);
    kept = std::min(rows, query.limit);
    tile = end;
  }
  for (std::size_t v = 0; v < query.values.size(); ++v) result.columns.push_back(run.output(v));
  return result;
}

}  // namespace headrace::fetch
