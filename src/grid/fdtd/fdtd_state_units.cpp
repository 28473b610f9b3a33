#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include "grid/fdtd/fdtd_names.hpp"
#include "grid/fdtd/fdtd_state.hpp"

namespace headrace::grid {

double Fdtd::State::factor(std::string_view field, const Offsets& cell) const noexcept {
  const auto components = fdtd_components(options);
  if (std::ranges::find(components, field) == components.end()) return 1;
  const auto along = static_cast<std::size_t>(field[1] - 'x');
  return geometry.factor(along) * (is_magnetic(field) ? FdtdCells::edge_share(along, geometry.walls_at(cell)) : 1);
}

template <class Convert>
void Fdtd::State::for_each_factor(std::string_view field, std::size_t count, const Convert& convert) const {
  const double inside = factor(field, {1, 1, 1});
  if (inside == 1 && !geometry.has_magnetic_walls()) return;
  const Extent& extent = options.extent;
  std::size_t number = 0;
  for (std::int64_t z = 0; z < extent.nz; ++z) {
    for (std::int64_t y = 0; y < extent.ny; ++y) {
      for (std::int64_t x = 0; x < extent.nx && number < count; ++x, ++number)
        convert(number, geometry.walls_at({x, y, z}) == 0 ? inside : factor(field, {x, y, z}));
    }
  }
}

void Fdtd::State::to_components(std::string_view field, void* values, std::size_t count) const {
  const auto divide = [&]<class Value>(Value* all) {
    for_each_factor(field, count, [&](std::size_t i, double factor) { all[i] = static_cast<Value>(all[i] / factor); });
  };
  if (options.precision == Precision::fp64) return divide(static_cast<double*>(values));
  divide(static_cast<float*>(values));
}

std::vector<std::byte> Fdtd::State::from_components(std::string_view field, TypeKey type, const void* values,
                                                    std::size_t count) const {
  std::vector<std::byte> bytes;
  const auto multiply = [&]<class Value>(const Value* all) {
    for_each_factor(field, count, [&](std::size_t i, double factor) {
      if (bytes.empty()) {
        bytes.resize(count * sizeof(Value));
        std::memcpy(bytes.data(), all, bytes.size());
      }
      const auto value = static_cast<Value>(all[i] * factor);
      std::memcpy(bytes.data() + i * sizeof(Value), &value, sizeof(Value));
    });
  };
  if (type == TypeKey::of<double>()) multiply(static_cast<const double*>(values));
  if (type == TypeKey::of<float>()) multiply(static_cast<const float*>(values));
  return bytes;
}

}  // namespace headrace::grid
