#include "headrace/device/detail/access.hpp"

#include "base/names.hpp"

namespace headrace {

namespace {

constexpr auto kPatterns = names_of<AccessPattern>("an access pattern", {{AccessPattern::grid_stride, "grid-stride"},
                                                                         {AccessPattern::block_stride, "block-stride"},
                                                                         {AccessPattern::random_warp, "random-warp"},
                                                                         {AccessPattern::zipf_rows, "zipf-rows"},
                                                                         {AccessPattern::hot_tenth, "hot-tenth"}});
constexpr auto kRowOrders =
    names_of<RowOrder>("a row order", {{RowOrder::ordered, "ordered"}, {RowOrder::scattered, "scattered"}});
constexpr auto kOperations =
    names_of<AccessOperation>("an operation", {{AccessOperation::read, "read"},
                                               {AccessOperation::write, "write"},
                                               {AccessOperation::read_modify_write, "read-modify-write"}});
constexpr auto kStrategies = names_of<Strategy>("a strategy", {{Strategy::on_demand, "on-demand"},
                                                               {Strategy::zero_copy, "zero-copy"},
                                                               {Strategy::interleaved, "interleaved"},
                                                               {Strategy::prefetched, "prefetched"},
                                                               {Strategy::by_budget, "by-budget"}});

}  // namespace

std::string_view to_string(AccessPattern pattern) noexcept { return kPatterns.of(pattern); }
std::string_view to_string(RowOrder order) noexcept { return kRowOrders.of(order); }
std::string_view to_string(AccessOperation operation) noexcept { return kOperations.of(operation); }
std::string_view to_string(Strategy strategy) noexcept { return kStrategies.of(strategy); }

AccessPattern parse_access_pattern(std::string_view text) { return kPatterns.parse(text); }
RowOrder parse_row_order(std::string_view text) { return kRowOrders.parse(text); }
AccessOperation parse_access_operation(std::string_view text) { return kOperations.parse(text); }
Strategy parse_strategy(std::string_view text) { return kStrategies.parse(text); }

}  // namespace headrace
