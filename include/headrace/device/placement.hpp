#pragma once

// A Placement is the rule by which the pages of a Span are placed on devices and on the host.
//
//     headrace::Place device = headrace::Place::on(headrace::Device::parse("best"));
//     auto placement = headrace::Placement::interleaved({{device, 2}, {headrace::Place::host(), 1}});
//     for (const headrace::Place& place : placement.pages(6)) {
//       std::printf("%s\n", place.name().c_str());  // every third page is on the host
//     }

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/base/detail/bytes.hpp"
#include "headrace/device/device.hpp"

namespace headrace {

/// Bytes of a page of a Span unless SpanOptions::page_bytes sets another size: the largest page of a GPU's memory
/// management.
inline constexpr std::size_t kPageBytes = 2 * kMiB;

/// Where a page lies: in the memory of a device, or in that of the host.
class Place {
 public:
  /// The memory of the host.
  [[nodiscard]] static Place host() noexcept { return Place({}); }
  /// The memory of `device`.
  [[nodiscard]] static Place on(Device device) noexcept { return Place(device); }
  /// The place of that name: "host", or a device as Device::parse() takes it. Throws UsageError for any other.
  [[nodiscard]] static Place parse(std::string_view name);

  /// True for the memory of the host.
  [[nodiscard]] bool is_host() const noexcept { return !device_.has_value(); }
  /// The device; empty for the host.
  [[nodiscard]] std::optional<Device> device() const noexcept { return device_; }
  /// "host" or the name of the device; parse() accepts it.
  [[nodiscard]] std::string name() const;
  friend bool operator==(const Place&, const Place&) = default;

 private:
  explicit Place(std::optional<Device> device) noexcept : device_(device) {}
  std::optional<Device> device_;
};

/// Consecutive pages of a span.
struct PageRange {
  std::size_t first = 0;  ///< The number of the first page, from 0.
  std::size_t count = 0;  ///< How many pages follow from there.
  friend bool operator==(const PageRange&, const PageRange&) = default;
};

/// A place and its part of an interleaved span.
struct Share {
  Place place;               ///< Where the pages go.
  std::uint32_t weight = 1;  ///< Its part, relative to the other shares.
};

/// The rule by which the pages of a span are placed. It owns no memory.
class Placement {
 public:
  /// All pages in one place.
  [[nodiscard]] static Placement all(Place place);
  /// Pages dealt to the shares in proportion to their weights, each share spread as evenly as whole pages allow: device
  /// 2, host 1 puts every third page on the host (NVIDIA 2021). Throws UsageError if there is no share, a place appears
  /// twice, or all weights are 0.
  [[nodiscard]] static Placement interleaved(std::vector<Share> shares);
  /// Consecutive pages for each place, in this order and in numbers as equal as possible (Evtushenko 2020). Throws
  /// UsageError if there is no place.
  [[nodiscard]] static Placement blocked(const std::vector<Place>& places);
  /// A place for each page. Throws UsageError if empty; a span of another number of pages rejects it.
  [[nodiscard]] static Placement map(const std::vector<Place>& pages);
  /// At most `device_bytes` on the device, in whole pages; the rest on the host, spread evenly over the span.
  [[nodiscard]] static Placement budget(Device device, std::size_t device_bytes);
  /// The same with the hottest pages on the device: `heat` counts the accesses to each page; of equally hot pages the
  /// earlier one wins. Pages without accesses stay on the host unless there is room.
  [[nodiscard]] static Placement budget(Device device, std::size_t device_bytes, std::vector<std::uint64_t> heat);

  /// The place of each page of a span of `page_count` pages of `page_bytes` bytes. Throws UsageError if the rule does
  /// not fit that number.
  [[nodiscard]] std::vector<Place> pages(std::size_t page_count, std::size_t page_bytes = kPageBytes) const;

 private:
  enum class Rule : std::uint8_t { interleaved, blocked, map, budget };
  Placement(Rule rule, std::vector<Share> shares, std::size_t budget_bytes, std::vector<std::uint64_t> heat);

  Rule rule_;
  std::vector<Share> shares_;  ///< For a map, one share per page; for a budget, the device.
  std::size_t budget_bytes_;
  std::vector<std::uint64_t> heat_;
};

}  // namespace headrace
