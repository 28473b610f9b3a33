#include "operators/spmv/roofs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <vector>

#include "headrace/base/detail/bytes.hpp"
#include "headrace/base/detail/clock.hpp"
#include "headrace/base/error.hpp"
#include "operators/spmv/kernels.hpp"
#include "operators/spmv/store.hpp"

namespace headrace::operators {

namespace {

constexpr int kRuns = 5;
constexpr int kCopiesPerRun = 4;

[[nodiscard]] Span range_on(Device reader, Device place, std::size_t bytes) {
  return shared_span({reader}, bytes, std::vector<Place>(bytes / kPageBytes, Place::on(place)));
}

/// Seconds of one copy: the median of several runs after a warm-up run.
[[nodiscard]] double copy_seconds(StreamRef stream, double* to, const double* from, std::size_t count) {
  std::vector<double> seconds;
  for (int run = 0; run <= kRuns; ++run) {
    const Time start = SteadyClock::now();
    for (int copy = 0; copy < kCopiesPerRun; ++copy) {
      launch_gather(stream, to, from, count).or_throw("measuring a link");
    }
    stream.wait().or_throw("measuring a link");
    if (run > 0) seconds.push_back(std::chrono::duration<double>(SteadyClock::now() - start).count() / kCopiesPerRun);
  }
  std::nth_element(seconds.begin(), seconds.begin() + kRuns / 2, seconds.end());
  return seconds[kRuns / 2];
}

}  // namespace

double measure_gather(Device reader, Device owner) {
  const std::size_t bytes = (reader.properties().host_cores ? 32 : 256) * kMiB;
  const std::size_t count = bytes / sizeof(double);
  const Stream stream(reader);
  const Span from = range_on(reader, owner, bytes);
  const Span to = range_on(reader, reader, bytes);
  std::vector<double> sent(count);
  for (std::size_t i = 0; i < count; ++i) sent[i] = static_cast<double>(i * 31 % 8191);
  upload(stream, from, 0, sent.data(), bytes).or_throw("measuring a link");
  const double seconds = copy_seconds(stream, to.as<double>(), from.as<double>(), count);
  std::vector<double> arrived(count);
  download(stream, arrived.data(), to, 0, bytes).or_throw("measuring a link");
  if (arrived != sent) {
    throw DeviceError(Errc::device_fault,
                      fmt::format("{} did not read the data on {} correctly", reader.name(), owner.name()));
  }
  return static_cast<double>(bytes) / seconds;
}

}  // namespace headrace::operators
