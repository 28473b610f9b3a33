// Fetches columns of a table to a device, and queries them. This program makes the table itself: a source returns each
// chunk, one column of one fragment, as an array in Arrow's C data interface, from whatever reads its format.
// docs/fetch.md explains chunks, levels and limits.

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "headrace/fetch/fetch.hpp"
#include "headrace/fetch/levels.hpp"
#include "headrace/fetch/source.hpp"
#include "headrace/fetch/table.hpp"

namespace {

namespace fetch = headrace::fetch;

constexpr std::int64_t kRows = 100'000;
constexpr std::uint32_t kFragments = 4;

// Numbers as an array that owns them, without missing values.
class Numbers {
 public:
  static fetch::OwnedArray array(std::vector<double> values) {
    auto* const numbers = new Numbers(std::move(values));
    fetch::OwnedArray made;
    *made.out() = {.length = static_cast<std::int64_t>(numbers->values_.size()),
                   .null_count = 0,
                   .offset = 0,
                   .n_buffers = 2,
                   .n_children = 0,
                   .buffers = numbers->buffers_,
                   .children = nullptr,
                   .dictionary = nullptr,
                   .release =
                       [](ArrowArray* array) {
                         delete static_cast<Numbers*>(array->private_data);
                         array->release = nullptr;
                       },
                   .private_data = numbers};
    return made;
  }

 private:
  explicit Numbers(std::vector<double> values) : values_(std::move(values)), buffers_{nullptr, values_.data()} {}

  std::vector<double> values_;
  const void* buffers_[2];  // validity, which is absent, and values
};

// The hours of a year, and a temperature for each.
class Weather final : public fetch::Source {
 public:
  Weather()
      : Source({{.name = "hour", .type = {.id = fetch::Type::float64}, .nullable = false},
                {.name = "temperature", .type = {.id = fetch::Type::float64}, .nullable = false}},
               std::vector<fetch::Fragment>(kFragments, {.rows = kRows})) {}

  fetch::OwnedArray read(fetch::Chunk chunk) override {
    std::vector<double> values(kRows);
    for (std::int64_t row = 0; row < kRows; ++row) {
      const auto hour = static_cast<double>(chunk.fragment * kRows + row);
      values[static_cast<std::size_t>(row)] = chunk.column == 0 ? hour : 10 + static_cast<double>(row % 24);
    }
    return Numbers::array(std::move(values));
  }
  std::vector<fetch::FileRange> ranges(fetch::Chunk) const override { return {}; }  // it reads no files
  std::size_t read_bytes(fetch::Chunk) const override { return kRows * sizeof(double); }
};

}  // namespace

int main() {
  const headrace::Device device = headrace::Device::parse("cpu:0");  // or "cuda:0"
  // Fetched chunks stay on the device, and those that do not fit there in pinned memory, within these budgets.
  fetch::Levels levels(device, {.cpu_bytes = 64 << 20, .device_bytes = 64 << 20});
  const auto weather = std::make_shared<Weather>();

  // Columns for custom kernels: view() gives the place of a chunk once it has been fetched.
  fetch::Fetch columns(levels, weather, {.columns = {1}});
  columns.wait();
  const fetch::ColumnView& view = columns.view(0, 0);
  std::printf("chunk 0: %lld temperatures on %s\n", static_cast<long long>(view.length), device.name().c_str());

  // A query: the mean of all temperatures, and their number.
  fetch::Table table(levels, weather);
  const fetch::TableResult result =
      table.scan({.aggregates = {{fetch::Aggregate::average, fetch::Expression::column(1)}, {}}});
  double mean = 0;
  std::int64_t count = 0;
  std::memcpy(&mean, result.columns[0].values.data(), sizeof mean);
  std::memcpy(&count, result.columns[1].values.data(), sizeof count);
  std::printf("%lld rows, %.2f degrees on average\n", static_cast<long long>(count), mean);
  return count == kFragments * kRows && std::abs(mean - 21.5) < 0.01 ? EXIT_SUCCESS : EXIT_FAILURE;
}
