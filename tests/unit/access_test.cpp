#include "headrace/device/detail/access.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "headrace/base/error.hpp"

namespace headrace {
namespace {

TEST(AccessTest, NamesParseBack) {
  for (const auto pattern : {AccessPattern::grid_stride, AccessPattern::block_stride, AccessPattern::random_warp,
                             AccessPattern::zipf_rows, AccessPattern::hot_tenth}) {
    EXPECT_EQ(parse_access_pattern(to_string(pattern)), pattern);
  }
  for (const auto operation : {AccessOperation::read, AccessOperation::write, AccessOperation::read_modify_write}) {
    EXPECT_EQ(parse_access_operation(to_string(operation)), operation);
  }
  for (const auto strategy :
       {Strategy::on_demand, Strategy::zero_copy, Strategy::interleaved, Strategy::prefetched, Strategy::by_budget}) {
    EXPECT_EQ(parse_strategy(to_string(strategy)), strategy);
  }
  EXPECT_EQ(to_string(AccessPattern::grid_stride), "grid-stride");
  EXPECT_EQ(to_string(AccessOperation::read_modify_write), "read-modify-write");
  EXPECT_EQ(to_string(Strategy::on_demand), "on-demand");
}

/// Message of the exception that `parse` throws.
template <class Parse>
std::string refusal(Parse parse, std::string_view text) {
  try {
    static_cast<void>(parse(text));
  } catch (const UsageError& error) {
    return error.what();
  }
  return "nothing was thrown";
}

TEST(AccessTest, UnknownNamesAreRefusedWithThoseThereAre) {
  EXPECT_EQ(refusal(parse_access_pattern, "zigzag"),
            "'zigzag' is not an access pattern: grid-stride, block-stride, random-warp, zipf-rows, hot-tenth");
  EXPECT_EQ(refusal(parse_access_operation, "Read"), "'Read' is not an operation: read, write, read-modify-write");
  EXPECT_EQ(refusal(parse_strategy, ""),
            "'' is not a strategy: on-demand, zero-copy, interleaved, prefetched, by-budget");
}

}  // namespace
}  // namespace headrace
