// Applies a sparse matrix on all devices of one kind: heat spreads along a rod, step by step. The temperatures are in
// one address range over all devices, and neighbours read in the next step what a device writes in this one.

#include <cstdint>
#include <cstdio>
#include <numeric>
#include <utility>
#include <vector>

#include "headrace/base/error.hpp"
#include "headrace/operators/csr_matrix.hpp"

namespace {

constexpr std::int64_t kCells = 100000;
constexpr int kSteps = 1000;

struct Rod {
  std::vector<std::int64_t> row_starts{0};
  std::vector<std::int32_t> columns;
  std::vector<double> values;
};

/// Each cell keeps half of its heat and gives a quarter to either side; nothing is lost at the ends.
Rod make_rod() {
  Rod rod;
  for (std::int64_t cell = 0; cell < kCells; ++cell) {
    for (const std::int64_t from : {cell - 1, cell, cell + 1}) {
      if (from < 0 || from >= kCells) continue;
      const bool at_end = cell == 0 || cell == kCells - 1;
      rod.columns.push_back(static_cast<std::int32_t>(from));
      rod.values.push_back(from != cell ? 0.25 : at_end ? 0.75 : 0.5);
    }
    rod.row_starts.push_back(static_cast<std::int64_t>(rod.columns.size()));
  }
  return rod;
}

std::vector<headrace::Device> all_of_the_best_kind() {
  const auto present = headrace::Device::list();
  std::vector<headrace::Device> chosen;
  for (const headrace::Device device : present) {
    if (device.kind() == present.front().kind()) chosen.push_back(device);
  }
  return chosen;
}

void run() {
  const Rod rod = make_rod();
  headrace::operators::CsrMatrix<double> matrix(
      all_of_the_best_kind(),
      headrace::operators::HostCsr<double, std::int32_t>{kCells, kCells, rod.row_starts, rod.columns, rod.values});
  headrace::Span now = matrix.input_vector();
  headrace::Span next = matrix.output_vector();
  std::vector<double> heat(kCells, 0.0);
  heat[kCells / 2] = 1.0;
  matrix.copy_in(now, heat).or_throw("copying the temperatures");
  for (int step = 0; step < kSteps; ++step) {
    matrix.enqueue(now.as<double>(), next.as<double>()).or_throw("a step");
    std::swap(now, next);
  }
  matrix.copy_out(heat, now).or_throw("copying the temperatures");
  std::printf("%zu devices, %d steps: the middle has %.6f, all together %.6f\n", matrix.parts().size(), kSteps,
              heat[kCells / 2], std::accumulate(heat.begin(), heat.end(), 0.0));
}

}  // namespace

int main() {
  try {
    run();
    return 0;
  } catch (const headrace::Exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
