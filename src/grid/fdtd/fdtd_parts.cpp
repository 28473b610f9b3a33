#include "grid/fdtd/fdtd_parts.hpp"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <utility>

namespace headrace::grid {

namespace {

[[nodiscard]] std::int64_t number_of(const Extent& extent, const Offsets& cell) noexcept {
  return (cell[2] * extent.ny + cell[1]) * extent.nx + cell[0];
}

/// Merges boxes that follow each other along an axis and are equal along the others. Boxes come in cell order.
[[nodiscard]] std::vector<Box> stack(const std::vector<Box>& boxes, std::size_t axis) {
  std::map<std::pair<Offsets, Offsets>, std::size_t> open;  // keyed by the extent and start of the next box
  std::vector<Box> stacked;
  for (const Box& box : boxes) {
    auto key = std::pair{box.low, box.high};
    key.second[axis] = 0;
    const auto found = open.find(key);
    const std::size_t at = found == open.end() ? stacked.size() : found->second;
    if (found == open.end()) {
      stacked.push_back(box);
    } else {
      stacked[at].high[axis] = box.high[axis];
      open.erase(found);
    }
    key.first[axis] = box.high[axis];
    open.emplace(key, at);
  }
  return stacked;
}

template <class Point>
void sort_by_cell(std::vector<Point>& points) {
  std::stable_sort(points.begin(), points.end(), [](const Point& a, const Point& b) { return a.cell < b.cell; });
}

}  // namespace

std::vector<Box> boxes_of_cells(const Extent& extent, std::vector<Offsets> cells) {
  const auto before = [&](const Offsets& a, const Offsets& b) { return number_of(extent, a) < number_of(extent, b); };
  std::sort(cells.begin(), cells.end(), before);
  std::vector<Box> boxes;
  for (const Offsets& cell : cells) {
    Box* last = boxes.empty() ? nullptr : &boxes.back();
    const bool same_row = last != nullptr && last->low[1] == cell[1] && last->low[2] == cell[2];
    if (same_row && cell[0] < last->high[0]) continue;  // duplicate cell
    if (same_row && cell[0] == last->high[0]) {
      ++last->high[0];
    } else {
      boxes.push_back(Box::cell(cell));
    }
  }
  return stack(stack(boxes, 1), 2);
}

template <class Value>
FdtdPart<Value>::FdtdPart(Device device, const Box& own, const Extent& extent)
    : device_(device), stream_(device), own_(own), extent_(extent) {}

template <class Value>
FdtdLayers<Value> FdtdPart<Value>::upload_layers(std::span<const CpmlAxis> axes) {
  FdtdLayers<Value> layers;
  for (std::size_t axis = 0; axis < axes.size(); ++axis) {
    layers.electric[axis] = factors(axes[axis].electric, layers.memory);
    layers.magnetic[axis] = factors(axes[axis].magnetic, layers.memory);
  }
  return layers;
}

template <class Value>
void FdtdPart<Value>::set_layers(FdtdLayers<Value> layers) noexcept {
  factors_ = std::move(layers.memory);
  for (std::size_t axis = 0; axis < layers.electric.size(); ++axis) {
    tables_.electric[axis] = layers.electric[axis];
    tables_.magnetic[axis] = layers.magnetic[axis];
  }
}

template <class Value>
FdtdMediaTables<Value> FdtdPart<Value>::upload_media(const FdtdNumbered<FdtdElectric<double>>& electric,
                                                     const FdtdNumbered<FdtdMagnetic<double>>& magnetic) {
  std::vector<FdtdElectric<Value>> of_e;
  std::vector<FdtdMagnetic<Value>> of_h;
  of_e.reserve(electric.table.size());
  of_h.reserve(magnetic.table.size());
  for (const FdtdElectric<double>& one : electric.table) {
    FdtdElectric<Value>& rounded = of_e.emplace_back();
    std::ranges::transform(one.ca, rounded.ca, [](double value) { return static_cast<Value>(value); });
    std::ranges::transform(one.cb, rounded.cb, [](double value) { return static_cast<Value>(value); });
  }
  for (const FdtdMagnetic<double>& one : magnetic.table) {
    FdtdMagnetic<Value>& rounded = of_h.emplace_back();
    std::ranges::transform(one.db, rounded.db, [](double value) { return static_cast<Value>(value); });
  }
  return {upload(of_e), upload(of_h)};
}

template <class Value>
void FdtdPart<Value>::set_media(FdtdMediaTables<Value> media, const FdtdMediaRuns& runs) noexcept {
  media_ = std::move(media);
  const bool on_cpu = device_.properties().host_cores;
  tables_.electric_media = {media_.electric.template as<FdtdElectric<Value>>(),
                            on_cpu && !runs.electric.empty() ? runs.electric.data() : nullptr};
  tables_.magnetic_media = {media_.magnetic.template as<FdtdMagnetic<Value>>(),
                            on_cpu && !runs.magnetic.empty() ? runs.magnetic.data() : nullptr};
}

template <class Value>
FdtdPoleTables FdtdPart<Value>::upload_poles(std::span<const FdtdDispersive<double>> media,
                                             std::span<const FdtdPoleFactors<double>> poles) {
  const auto rounded = [](double value) { return static_cast<Value>(value); };
  std::vector<FdtdDispersive<Value>> of_media;
  for (const FdtdDispersive<double>& one : media) {
    FdtdDispersive<Value>& made = of_media.emplace_back();
    std::ranges::copy(one.first, made.first);
    std::ranges::copy(one.real, made.real);
    std::ranges::copy(one.pairs, made.pairs);
    std::ranges::transform(one.change, made.change, rounded);
  }
  std::vector<FdtdPoleFactors<Value>> of_poles;
  for (const FdtdPoleFactors<double>& one : poles) {
    FdtdPoleFactors<Value>& made = of_poles.emplace_back();
    std::ranges::transform(one.decay, made.decay, rounded);
    std::ranges::transform(one.gain, made.gain, rounded);
  }
  return {upload(of_media), upload(of_poles)};
}

template <class Value>
void FdtdPart<Value>::set_poles(FdtdPoleTables tables) noexcept {
  poles_ = std::move(tables);
  tables_.dispersion = {poles_.media.template as<FdtdDispersive<Value>>(),
                        poles_.poles.template as<FdtdPoleFactors<Value>>()};
}

template <class Value>
template <class Item>
Buffer FdtdPart<Value>::upload(const std::vector<Item>& items) {
  const std::size_t bytes = items.size() * sizeof(Item);
  Buffer buffer(device_, MemoryKind::device, bytes);
  if (bytes == 0) return buffer;
  stream_.copy(buffer.data(), items.data(), bytes).or_throw("copying tables to a device");
  stream_.wait().or_throw("copying tables to a device");
  return buffer;
}

template <class Value>
CpmlFactors<Value> FdtdPart<Value>::factors(const CpmlTable& table, std::vector<Buffer>& memory) {
  const std::size_t count = table.b.size();
  std::vector<Value> all;
  for (const std::vector<double>* numbers : {&table.b, &table.c, &table.k}) {
    for (const double number : *numbers) all.push_back(static_cast<Value>(number));
  }
  memory.push_back(upload(all));
  const Value* first = memory.back().template as<Value>();
  return {first, first + count, first + 2 * count};
}

template <class Value>
void FdtdPart<Value>::set_sources(std::span<const FdtdSourceAt> sources) {
  std::vector<FdtdSourcePoint> points;
  std::vector<Value> samples;
  std::map<const std::vector<double>*, std::int64_t> places;
  for (const FdtdSourceAt& source : sources) {
    const auto [place, is_new] = places.try_emplace(source.samples.get(), static_cast<std::int64_t>(samples.size()));
    points.push_back({.cell = number_of(extent_, source.cell),
                      .first = place->second,
                      .count = static_cast<std::int64_t>(source.samples->size()),
                      .field = source.field,
                      .magnetic = source.magnetic ? 1 : 0});
    if (!is_new) continue;
    for (const double sample : *source.samples) samples.push_back(static_cast<Value>(sample));
  }
  sort_by_cell(points);
  source_points_ = upload(points);
  samples_ = upload(samples);
  tables_.sources = {source_points_.template as<FdtdSourcePoint>(), samples_.template as<Value>(),
                     static_cast<std::int64_t>(points.size())};
}

template <class Value>
void FdtdPart<Value>::set_receivers(std::span<const FdtdReceiverAt> receivers, std::int64_t capacity) {
  std::vector<FdtdReceiverPoint> points;
  own_receivers_.clear();
  own_factors_.clear();
  for (std::size_t i = 0; i < receivers.size(); ++i) {
    if (!own_.contains(Box::cell(receivers[i].cell))) continue;
    points.push_back({.cell = number_of(extent_, receivers[i].cell),
                      .field = receivers[i].field,
                      .number = static_cast<std::int32_t>(own_receivers_.size())});
    own_receivers_.push_back(i);
    own_factors_.push_back(receivers[i].factor);
  }
  sort_by_cell(points);
  receiver_points_ = upload(points);
  traces_ = Buffer(device_, MemoryKind::device, points.size() * static_cast<std::size_t>(capacity) * sizeof(Value));
  tables_.receivers.points = receiver_points_.template as<FdtdReceiverPoint>();
  tables_.receivers.traces = traces_.template as<Value>();
  tables_.receivers.count = static_cast<std::int32_t>(points.size());
  tables_.receivers.capacity = static_cast<std::int32_t>(capacity);
}

template <class Value>
void FdtdPart<Value>::collect_traces(std::int64_t steps, std::span<std::vector<double>> traces) {
  if (own_receivers_.empty()) return;
  const auto capacity = static_cast<std::size_t>(tables_.receivers.capacity);
  collected_.resize(own_receivers_.size() * capacity);
  stream_.copy(collected_.data(), traces_.data(), collected_.size() * sizeof(Value)).or_throw("reading traces");
  stream_.wait().or_throw("reading traces");
  for (std::size_t i = 0; i < own_receivers_.size(); ++i) {
    const Value* first = collected_.data() + i * capacity;
    std::vector<double>& trace = traces[own_receivers_[i]];
    const double factor = own_factors_[i];
    std::transform(first, first + steps, std::back_inserter(trace), [&](Value value) { return value / factor; });
  }
}

template class FdtdPart<float>;
template class FdtdPart<double>;

}  // namespace headrace::grid
