#include "headrace/device/access.hpp"

#include <fmt/format.h>

#include <array>
#include <string>
#include <utility>

#include "headrace/base/error.hpp"

namespace headrace {

namespace {

template <class T, std::size_t Count>
using Names = std::array<std::pair<T, std::string_view>, Count>;

constexpr Names<AccessPattern, 5> kPatterns{{{AccessPattern::grid_stride, "grid-stride"},
                                             {AccessPattern::block_stride, "block-stride"},
                                             {AccessPattern::random_warp, "random-warp"},
                                             {AccessPattern::zipf_rows, "zipf-rows"},
                                             {AccessPattern::hot_tenth, "hot-tenth"}}};
constexpr Names<RowOrder, 2> kRowOrders{{{RowOrder::ordered, "ordered"}, {RowOrder::scattered, "scattered"}}};
constexpr Names<AccessOperation, 3> kOperations{{{AccessOperation::read, "read"},
                                                 {AccessOperation::write, "write"},
                                                 {AccessOperation::read_modify_write, "read-modify-write"}}};
constexpr Names<Strategy, 5> kStrategies{{{Strategy::on_demand, "on-demand"},
                                          {Strategy::zero_copy, "zero-copy"},
                                          {Strategy::interleaved, "interleaved"},
                                          {Strategy::prefetched, "prefetched"},
                                          {Strategy::by_budget, "by-budget"}}};

template <class T, std::size_t Count>
std::string_view name_of(const Names<T, Count>& names, T value) noexcept {
  for (const auto& [named, name] : names) {
    if (named == value) return name;
  }
  return "unknown";
}

template <class T, std::size_t Count>
T parse(const Names<T, Count>& names, std::string_view text, std::string_view what) {
  std::string known;
  for (const auto& [value, name] : names) {
    if (name == text) return value;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", name);
  }
  throw UsageError(fmt::format("'{}' is no {}: {}", text, what, known));
}

}  // namespace

std::string_view to_string(AccessPattern pattern) noexcept { return name_of(kPatterns, pattern); }
std::string_view to_string(RowOrder order) noexcept { return name_of(kRowOrders, order); }
std::string_view to_string(AccessOperation operation) noexcept { return name_of(kOperations, operation); }
std::string_view to_string(Strategy strategy) noexcept { return name_of(kStrategies, strategy); }

AccessPattern parse_access_pattern(std::string_view text) { return parse(kPatterns, text, "access pattern"); }
RowOrder parse_row_order(std::string_view text) { return parse(kRowOrders, text, "order of rows"); }
AccessOperation parse_access_operation(std::string_view text) { return parse(kOperations, text, "operation"); }
Strategy parse_strategy(std::string_view text) { return parse(kStrategies, text, "strategy"); }

}  // namespace headrace
