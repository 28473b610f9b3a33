#include "advice_words.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "headrace/base/detail/bytes.hpp"

namespace headrace::detail {

namespace {

constexpr std::array kUnits{"B/s", "kB/s", "MB/s", "GB/s", "TB/s"};

std::string rate(double bytes_per_second) {
  std::size_t unit = 0;
  while (bytes_per_second >= 1000 && unit + 1 < kUnits.size()) {
    bytes_per_second /= 1000;
    ++unit;
  }
  return fmt::format("{:.3g} {}", bytes_per_second, kUnits[unit]);
}

std::string_view how_it_is_used(const AccessProfile& profile) {
  if (!profile.heat.empty()) return "page heat as counted";
  switch (profile.pattern) {
    case AccessPattern::grid_stride: return "neighbouring blocks traverse it side by side";
    case AccessPattern::block_stride: return "each block traverses its own part";
    case AccessPattern::random_warp: return "each warp accesses 128 bytes of a random page at a time";
    case AccessPattern::hot_tenth: return "a hot tenth is swept repeatedly";
    case AccessPattern::zipf_rows: break;
  }
  return profile.order == RowOrder::ordered ? "rows are drawn by popularity and stored in that order"
                                            : "rows are drawn by popularity and stored in random order";
}

std::string what_the_data_is(const AccessProfile& profile) {
  const std::string data = format_bytes(profile.bytes);
  const std::string budget = format_bytes(profile.budget_bytes);
  if (profile.bytes <= profile.budget_bytes)
    return fmt::format("{} of data fit in the device's budget of {}", data, budget);
  return fmt::format("{} of data are {:.3g} times the device's budget of {}", data, profile.factor(), budget);
}

std::string what_it_does(const AccessProfile& profile, const MemoryRates& rates, const StrategyForecast& choice) {
  const bool fits = profile.bytes <= profile.budget_bytes;
  switch (choice.strategy) {
    case Strategy::zero_copy:
      if (rates.one_memory) return "Device and host share one memory, so it may stay where it is";
      return "Zero-copy leaves all of it in pinned host memory, and the kernel accesses it over the link: any other "
             "preparation costs more than it gains";
    case Strategy::interleaved:
      if (fits) return "All of it goes on the device";
      return fmt::format(
          "An interleaved span deals pages evenly, so that device memory and link work at the same time: "
          "{:.3g}% of the bytes cross the link",
          100 * choice.host_share);
    case Strategy::by_budget:
      if (fits) return "All of it goes on the device";
      return fmt::format("A span with the hottest pages on the device: {:.3g}% of the bytes cross the link",
                         100 * choice.host_share);
    case Strategy::prefetched:
      return fmt::format(
          "Managed memory with what fits prefetched and the rest kept on the host: {:.3g}% of the bytes "
          "cross the link",
          100 * choice.host_share);
    case Strategy::on_demand: break;
  }
  return "Managed memory without hints: touched pages move to the device";
}

/// Code that prefetches what fits, in pages dealt evenly, and keeps the rest mapped on the host.
std::string prefetched_code(const AccessProfile& profile, bool fits) {
  if (fits) {
    return fmt::format(
        "headrace::Stream stream(device);\n"
        "data.prefetch(stream, 0, {}, headrace::Place::on(device)).or_throw(\"prefetching\");\n",
        profile.bytes);
  }
  return fmt::format(
      "headrace::Stream stream(device);\n"
      "data.keep_mapped(0, data.bytes()).or_throw(\"mapping\");\n"
      "const auto places = headrace::Placement::budget(device, {}).pages({});\n"
      "for (std::size_t page = 0; page < places.size(); ++page) {{\n"
      "  const std::size_t offset = page * headrace::kPageBytes;\n"
      "  const std::size_t bytes = std::min(headrace::kPageBytes, data.bytes() - offset);\n"
      "  data.prefer(offset, bytes, places[page]).or_throw(\"placing a page\");\n"
      "  data.prefetch(stream, offset, bytes, places[page]).or_throw(\"prefetching a page\");\n"
      "}}\n",
      profile.budget_bytes, profile.page_count());
}

}  // namespace

std::string because(const AccessProfile& profile, const MemoryRates& rates,
                    const std::vector<StrategyForecast>& forecasts) {
  const StrategyForecast& choice = forecasts.front();
  std::string words = fmt::format("{}; {}. {}. Predicted {}", what_the_data_is(profile), how_it_is_used(profile),
                                  what_it_does(profile, rates, choice), rate(choice.bytes_per_second));
  const auto next = std::find_if(forecasts.begin() + 1, forecasts.end(), [&](const StrategyForecast& one) {
    return one.refused.empty() && one.bytes_per_second < choice.bytes_per_second * 0.99;
  });
  if (next != forecasts.end()) {
    words += fmt::format("; {} {}", to_string(next->strategy), rate(next->bytes_per_second));
  }
  if (!std::isinf(profile.reuse)) words += fmt::format(", over {:g} passes including preparation", profile.reuse);
  return words + ".";
}

std::string cpp_code(const AccessProfile& profile, Strategy strategy, Device device) {
  const std::string open = fmt::format("const auto device = headrace::Device::parse(\"{}\");\n", device.name());
  const std::size_t bytes = profile.bytes;
  const std::size_t budget = profile.budget_bytes;
  const bool fits = bytes <= budget;
  const std::string span = "#include \"headrace/device/span.hpp\"\n\n" + open;
  std::string on_device =
      span +
      fmt::format("headrace::Span data(device, {}, headrace::Placement::all(headrace::Place::on(device)));\n", bytes);
  const std::string dealt =
      fmt::format("headrace::Span data(device, {}, headrace::Placement::budget(device, {}));\n", bytes, budget);
  switch (strategy) {
    case Strategy::zero_copy:
      return "#include \"headrace/device/buffer.hpp\"\n\n" + open +
             fmt::format("headrace::Buffer data(device, headrace::MemoryKind::mapped, {});\n", bytes);
    case Strategy::interleaved: return fits ? on_device : span + dealt;
    case Strategy::by_budget:
      if (fits) return on_device;
      return "#include \"headrace/device/rebalance.hpp\"\n\n" + open + "headrace::Stream stream(device);\n" + dealt +
             "headrace::PageHeat heat(stream, data.data(), data.page_count());\n"
             "// Fill data, then run your kernel once with heat.counter() as an argument: counter.touch(group, "
             "address).\n" +
             fmt::format("headrace::rebalance(data, stream, heat, {});  // the hottest pages up\n", budget);
    case Strategy::prefetched:
    case Strategy::on_demand: break;
  }
  std::string managed = fmt::format(
      "#include <algorithm>\n\n#include \"headrace/device/detail/managed.hpp\"\n\n{}headrace::ManagedMemory "
      "data(device, {}); "
      " // fill it on the "
      "host\n",
      open, bytes);
  if (strategy == Strategy::on_demand) return managed;
  return managed + prefetched_code(profile, fits);
}

std::string python_code(const AccessProfile& profile, Strategy strategy, Device device) {
  const std::string open = "import headrace\n\n";
  const std::string name = device.name();
  const bool fits = profile.bytes <= profile.budget_bytes;
  const std::string placed = [&] {
    if (strategy == Strategy::zero_copy) return std::string("headrace.Placement.all(\"host\")");
    if (fits) return fmt::format("headrace.Placement.all(\"{}\")", name);
    return fmt::format("headrace.Placement.budget(\"{}\", {})", name, profile.budget_bytes);
  }();
  std::string code = open + fmt::format("data = headrace.Span(\"{}\", {}, {})\n", name, profile.bytes, placed);
  if (strategy == Strategy::by_budget && !fits) {
    code += fmt::format(
        "counts = ...  # accesses to each of its {} pages, as your kernel counts them\n"
        "data.move(headrace.Placement.budget(\"{}\", {}, counts))  # the hottest pages up\n",
        profile.page_count(), name, profile.budget_bytes);
  }
  return code;
}

}  // namespace headrace::detail
