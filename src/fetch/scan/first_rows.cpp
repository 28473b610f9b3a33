#include "fetch/scan/first_rows.hpp"

#include <algorithm>

#include "fetch/scan/run.hpp"
#include "headrace/base/detail/bytes.hpp"
#include "headrace/base/error.hpp"

namespace headrace::fetch {

namespace {

/// With a greater limit, ordering the candidates costs as much as ordering all rows.
constexpr std::int64_t kLimitMax = std::int64_t{1} << 18;
/// The same bound as a share of all rows: rows per row of the limit.
constexpr std::int64_t kRowsPerLimit = 8;
/// Most candidate rows at once, enough for a table to need few launches, and their memory.
constexpr std::int64_t kRoomMax = std::int64_t{1} << 20;
constexpr std::size_t kRoomBytes = 64 * kMiB;
constexpr std::uint32_t kTilesFirst = 16;

/// Room for candidate rows of `values` values: the rows that fit, but at least a few tiles and twice the limit.
std::int64_t room_for(std::size_t values, std::int64_t limit) {
  const auto fitting = static_cast<std::int64_t>(kRoomBytes / (values * (sizeof(std::int64_t) + 1)));
  const std::int64_t least = std::max<std::int64_t>(kTilesFirst * kTileRows, 2 * limit);
  return std::max(std::min(fitting, kRoomMax), least);
}

/// Chooses how many tiles to run at a time.
class Pace {
 public:
  Pace(std::int64_t limit, std::int64_t room)
      : limit_(limit), room_(room), safe_(static_cast<std::uint32_t>(room / kTileRows)) {
    const std::int64_t some = 4 * limit / kTileRows + 1;
    tiles_ = std::min(safe_, std::max(kTilesFirst, static_cast<std::uint32_t>(some)));
  }
  [[nodiscard]] std::uint32_t tiles() const noexcept { return tiles_; }
  /// The rows of the last tiles had no room. Falls back to a number of tiles that always fits.
  void overflowed() noexcept { tiles_ = safe_; }
  /// `seen` tiles have run so far, and the last launch added `rows` rows.
  void went_on(std::uint32_t seen, std::int64_t rows, bool bounded) noexcept {
    if (!bounded) {
      tiles_ = safe_;
    } else if (rows > room_ / 4) {  // the rows come in an unfavourable order
      tiles_ = std::max(safe_, tiles_ / 2);
    } else {
      // If the rows are unordered, the next tiles fill a quarter of the room.
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
    return {};  // without a bound, the query's error is reported, or a program that was too long may fit
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
