#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <thread>

#include "headrace/grid/simulation.hpp"

// How the cores of a CPU device share a domain.
namespace headrace::grid {
namespace {

[[nodiscard]] std::size_t cores() {
  const auto there = static_cast<unsigned>(Device::parse("cpu").properties().multiprocessor_count);
  return std::min(there, std::max(std::thread::hardware_concurrency(), 1U));
}

TEST(GridCores, EachHasAPartOfALargeDomain) {
  for (const Extent& extent : {Extent{4000, 3000}, Extent{300, 300, 300}}) {
    const CoreShares shares = over_cores(Device::parse("cpu"), extent);
    EXPECT_EQ(shares.devices, std::vector<Device>(cores(), Device::parse("cpu")));
    EXPECT_EQ(shares.decomposition.parts().size(), cores());
    EXPECT_EQ(shares.decomposition.extent(), extent);
    EXPECT_GT(shares.redundant, 1);
  }
}

TEST(GridCores, ASmallDomainIsNotWorthAnExchange) {
  for (const Extent& extent : {Extent{100, 100}, Extent{25, 25, 25}, Extent{1, 1}}) {
    const CoreShares shares = over_cores(Device::parse("cpu"), extent);
    EXPECT_EQ(shares.devices.size(), 1U);
    EXPECT_EQ(shares.redundant, 1);
  }
}

TEST(GridCores, GhostsFitIntoEveryPart) {
  for (const Extent& extent : {Extent{1 << 20, 2}, Extent{4, 1 << 18}, Extent{3, 5, 1 << 14}, Extent{64, 64, 64}}) {
    for (const std::array<bool, 3>& periodic : {std::array{false, false, false}, std::array{true, true, false}}) {
      for (const int redundant : {1, 2, 16}) {
        const CoreShares shares = over_cores(Device::parse("cpu"), extent, periodic, redundant);
        EXPECT_EQ(shares.decomposition.periodic(), periodic);
        EXPECT_TRUE(redundant == 1 || shares.redundant == redundant);
        for (std::size_t part = 0; redundant == 1 && part < shares.devices.size(); ++part) {
          const Layers neighbours = shares.decomposition.neighbours(part);
          for (std::size_t axis = 0; axis < 3; ++axis) {
            if (neighbours.low[axis] + neighbours.high[axis] == 0) continue;
            EXPECT_LE(shares.redundant, shares.decomposition.parts()[part].size(axis));
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace headrace::grid
