#include "grid/fdtd/fdtd_media.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "headrace/base/error.hpp"
#include "headrace/grid/detail/fdtd_coefficients.hpp"

namespace headrace::testing {
namespace {

using grid::combination_bits;
using grid::combination_number;
using grid::electric_media;
using grid::Extent;
using grid::fdtd_coefficients;
using grid::FdtdElectric;
using grid::FdtdMaterials;
using grid::FdtdMedia;
using grid::FdtdOptions;
using grid::magnetic_media;
using grid::media_runs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr double kStep = 1e-12;
constexpr std::uint32_t kMixed = FdtdMedia<FdtdElectric<double>>::kMixed;

[[nodiscard]] FdtdOptions space(const Extent& extent, bool averaging = true) {
  FdtdOptions options;
  options.extent = extent;
  options.dimensions = 3;
  options.spacing = 1e-3;
  options.averaging = averaging;
  return options;
}

const std::vector<double> kOne{1};
const std::vector<double> kNone{0};

TEST(FdtdMedia, OneMediumIsOneCombination) {
  const std::vector<double> alike(60, 4);
  EXPECT_THAT(electric_media({alike, kNone, kOne}, space({5, 4, 3}), kStep).numbers, ElementsAre(0U));
  const std::vector<double> four{4};
  const auto made = electric_media({four, kNone, kOne}, space({5, 4, 3}), kStep);
  EXPECT_THAT(made.numbers, ElementsAre(0U));
  ASSERT_EQ(made.table.size(), 1U);
  EXPECT_EQ(made.table[0].cb[1], fdtd_coefficients(4, 0, 1, 1e-3, kStep).cb);
}

/// Two cells along each axis; the last one has another medium.
TEST(FdtdMedia, EdgesTakeTheMeanOfFourCells) {
  std::vector<double> permittivity(8, 1);
  permittivity[7] = 5;
  std::vector<double> conductivity(8, 0);
  conductivity[7] = 2;
  const auto made = electric_media({permittivity, conductivity, kOne}, space({2, 2, 2}), kStep);
  const auto& own = made.table[made.numbers[7]];
  const auto quarter = fdtd_coefficients(2, 0.5, 1, 1e-3, kStep);
  for (std::size_t along = 0; along < 3; ++along) {
    EXPECT_EQ(own.ca[along], quarter.ca);
    EXPECT_EQ(own.cb[along], quarter.cb);
  }
  // Only the edges at the cell's own low corner lie in it: the edges of other cells end at it.
  EXPECT_EQ(made.table[made.numbers[6]].cb[0], fdtd_coefficients(1, 0, 1, 1e-3, kStep).cb);
  EXPECT_EQ(made.table.size(), 2U);
}

TEST(FdtdMedia, FacesTakeTheHarmonicMeanOfTwoCells) {
  const std::vector<double> permeability{1, 4, 1, 4, 1, 4, 1, 4};
  const auto made = magnetic_media({kOne, kNone, permeability}, space({2, 2, 2}), kStep);
  const auto& own = made.table[made.numbers[7]];
  EXPECT_DOUBLE_EQ(own.db[0], fdtd_coefficients(1, 0, 1.6, 1e-3, kStep).db);
  EXPECT_EQ(own.db[1], fdtd_coefficients(1, 0, 4, 1e-3, kStep).db);
  EXPECT_EQ(own.db[2], own.db[1]);
  EXPECT_THAT(made.numbers, ElementsAre(0U, 1U, 0U, 1U, 0U, 1U, 0U, 1U));
}

TEST(FdtdMedia, WithoutAveragingCellsGiveTheirOwn) {
  std::vector<double> values(8, 1);
  values[7] = 5;
  const auto electric = electric_media({values, kNone, kOne}, space({2, 2, 2}, false), kStep);
  EXPECT_EQ(electric.table[electric.numbers[7]].cb[2], fdtd_coefficients(5, 0, 1, 1e-3, kStep).cb);
  const auto magnetic = magnetic_media({kOne, kNone, values}, space({2, 2, 2}, false), kStep);
  EXPECT_EQ(magnetic.table[magnetic.numbers[7]].db[0], fdtd_coefficients(1, 0, 5, 1e-3, kStep).db);
}

TEST(FdtdMedia, MeansOfTheLargestValuesAreFinite) {
  const std::vector<double> most(8, std::numeric_limits<double>::max());
  const auto made = electric_media({kOne, most, kOne}, space({2, 2, 2}), kStep);
  ASSERT_EQ(made.table.size(), 1U);
  EXPECT_EQ(made.table[0].ca[0], -1);
}

TEST(FdtdMedia, CountsCombinationsAndRefusesMoreThanNumbersTellApart) {
  std::vector<double> values;
  for (int i = 0; i < 60; ++i) values.push_back(1 + i);
  const FdtdOptions options = space({5, 4, 3}, false);
  EXPECT_EQ(electric_media({values, kNone, kOne}, options, kStep, 60).table.size(), 60U);
  std::string said;
  try {
    static_cast<void>(electric_media({values, kNone, kOne}, options, kStep, 59));
  } catch (const UsageError& error) {
    said = error.what();
  }
  EXPECT_THAT(said, HasSubstr("more than 59 different combinations"));
  EXPECT_THROW(static_cast<void>(magnetic_media({kOne, kNone, values}, options, kStep, 59)), UsageError);
}

TEST(FdtdMedia, RunsAreOfOneNumberOrMixed) {
  std::vector<std::uint32_t> numbers(2 * 35, 3);
  numbers[20] = 4;
  for (std::size_t i = 32; i < 35; ++i) numbers[i] = 7;  // the last cells of the first row
  EXPECT_THAT(media_runs(numbers, {35, 2, 1}), ElementsAre(3U, 3U, kMixed, 3U, 7U, 3U, 3U, 3U, 3U, 3U));
  const std::vector<std::uint32_t> one{0};
  EXPECT_TRUE(media_runs(one, {35, 1, 2}).empty());
}

TEST(FdtdMedia, ShortRunsBetweenMixedOnesAreMixed) {
  std::vector<std::uint32_t> numbers(8 * 10, 1);
  numbers[3] = numbers[4 * 8 + 1] = numbers[9 * 8] = 2;  // three runs between the first two, four after them
  EXPECT_THAT(media_runs(numbers, {80, 1, 1}),
              ElementsAre(kMixed, kMixed, kMixed, kMixed, kMixed, 1U, 1U, 1U, 1U, kMixed));
  numbers[3] = numbers[9 * 8] = 1;  // the runs at the ends of a row are kept
  EXPECT_THAT(media_runs(numbers, {80, 1, 1}), ElementsAre(1U, 1U, 1U, 1U, kMixed, 1U, 1U, 1U, 1U, 1U));
}

TEST(FdtdMedia, NumbersAreKeptAsValues) {
  for (const std::uint32_t number : {0U, 1U, 0x7F800001U, 0xFFFFFFFEU}) {  // including the bits of signalling NaNs
    EXPECT_EQ(combination_number(combination_bits<float>(number)), number);
    EXPECT_EQ(combination_number(combination_bits<double>(number)), number);
  }
}

}  // namespace
}  // namespace headrace::testing
