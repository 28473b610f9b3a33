#include "serve/worker_counters.hpp"

namespace headrace::serve::detail {

void SampleRing::push(const StageSample& sample) noexcept {
  const std::array<std::int64_t, kFields> values{
      sample.submitted.count(), sample.queue.count(),    sample.host.count(), sample.copy_in.count(),
      sample.kernel.count(),    sample.copy_out.count(), sample.whole.count()};
  Entry& entry = entries_[next_ % kEntries];
  const std::uint64_t round = next_ / kEntries;
  ++next_;
  entry.sequence.store(2 * round + 1, std::memory_order_relaxed);
  for (std::size_t i = 0; i < kFields; ++i) entry.fields[i].store(values[i], std::memory_order_release);
  entry.sequence.store(2 * round + 2, std::memory_order_release);  // pairs with read()
}

void SampleRing::read(std::vector<StageSample>& samples) const {
  for (const Entry& entry : entries_) {
    const std::uint64_t before = entry.sequence.load(std::memory_order_acquire);
    if (before == 0 || before % 2 != 0) continue;
    std::array<Duration, kFields> values;
    for (std::size_t i = 0; i < kFields; ++i) values[i] = Duration{entry.fields[i].load(std::memory_order_acquire)};
    if (entry.sequence.load(std::memory_order_relaxed) != before) continue;
    samples.push_back({.submitted = values[0],
                       .queue = values[1],
                       .host = values[2],
                       .copy_in = values[3],
                       .kernel = values[4],
                       .copy_out = values[5],
                       .whole = values[6]});
  }
}

void record_sample(WorkerCounters& counters, const StageSample& sample) noexcept {
  add_single_writer(counters.samples, std::uint64_t{1});
  add_single_writer(counters.queue_ns, sample.queue.count());
  add_single_writer(counters.copy_in_ns, sample.copy_in.count());
  add_single_writer(counters.kernel_ns, sample.kernel.count());
  add_single_writer(counters.copy_out_ns, sample.copy_out.count());
  add_single_writer(counters.host_ns, sample.host.count());
  counters.recent.push(sample);
}

}  // namespace headrace::serve::detail
