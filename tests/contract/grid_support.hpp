#pragma once

#include <string>
#include <vector>

#include "headrace/grid/simulation.hpp"
#include "tests/contract/devices.hpp"

namespace headrace::testing {

class GridTest : public DeviceTest {
 public:
  /// A device for each of `count` parts: any number of CPU devices, while CUDA devices are reused.
  [[nodiscard]] static std::vector<Device> devices(std::size_t count) {
    std::vector<Device> present;
    for (const Device other : Device::list()) {
      if (!on_cpu() && other.kind() == device().kind()) present.push_back(other);
    }
    for (std::size_t i = 0; on_cpu() && i < count; ++i) present.push_back(Device::parse("cpu:" + std::to_string(i)));
    std::vector<Device> chosen;
    for (std::size_t i = 0; i < count; ++i) chosen.push_back(present[i % present.size()]);
    return chosen;
  }
};

/// A field of a domain in host memory; 0 outside.
template <class T>
struct HostField {
  grid::Extent extent;
  std::vector<T> values;
  std::array<bool, 3> periodic{};

  explicit HostField(const grid::Extent& its) : extent(its), values(static_cast<std::size_t>(its.cells())) {}

  [[nodiscard]] T& at(std::int64_t x, std::int64_t y, std::int64_t z) {
    return values[static_cast<std::size_t>((z * extent.ny + y) * extent.nx + x)];
  }
  [[nodiscard]] T read(std::int64_t x, std::int64_t y, std::int64_t z) {
    if (periodic[0]) x = (x + extent.nx) % extent.nx;
    if (periodic[1]) y = (y + extent.ny) % extent.ny;
    if (periodic[2]) z = (z + extent.nz) % extent.nz;
    const bool inside = x >= 0 && y >= 0 && z >= 0 && x < extent.nx && y < extent.ny && z < extent.nz;
    return inside ? at(x, y, z) : T{0};
  }
};

/// Values in (-1, 1) without a pattern.
template <class T>
[[nodiscard]] HostField<T> scattered(const grid::Extent& extent, std::uint64_t seed) {
  HostField<T> field(extent);
  std::mt19937_64 random(seed);
  for (T& value : field.values) value = static_cast<T>(static_cast<double>(random() % 20001) / 10000.0 - 1.0);
  return field;
}

template <class Update>
void for_each_cell(const grid::Box& box, const Update& update) {
  for (std::int64_t z = box.low[2]; z < box.high[2]; ++z) {
    for (std::int64_t y = box.low[1]; y < box.high[1]; ++y) {
      for (std::int64_t x = box.low[0]; x < box.high[0]; ++x) update(x, y, z);
    }
  }
}

template <class T>
[[nodiscard]] std::vector<T> field_of(grid::Simulation& simulation, int field) {
  std::vector<T> values(static_cast<std::size_t>(simulation.decomposition().extent().cells()));
  simulation.get<T>(field, values);
  return values;
}

}  // namespace headrace::testing
