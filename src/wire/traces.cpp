#include "wire/traces.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <exception>
#include <iterator>
#include <span>

#include "wire/inference.hpp"

namespace headrace::wire {

namespace {

// Parts of traceparent, version 00: "00-<trace>-<span>-<flags>" (W3C Trace Context, 3.2).
constexpr std::size_t kVersionAt = 0;
constexpr std::size_t kTraceAt = 3;
constexpr std::size_t kSpanAt = 36;
constexpr std::size_t kFlagsAt = 53;
constexpr std::size_t kBytes = 55;
constexpr std::uint8_t kNoVersion = 0xff;
constexpr std::uint8_t kSampled = 1;

/// Reads lower-case hexadecimal digits. Returns false if there is any other character.
bool read_hex(std::string_view text, std::span<std::uint8_t> bytes) noexcept {
  const auto is_digit = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  if (!std::ranges::all_of(text, is_digit)) return false;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    std::from_chars(text.data() + 2 * i, text.data() + 2 * i + 2, bytes[i], 16);
  }
  return true;
}

bool is_zero(std::span<const std::uint8_t> bytes) noexcept {
  return std::ranges::all_of(bytes, [](std::uint8_t byte) { return byte == 0; });
}

}  // namespace

std::optional<TraceParent> sampled_parent(std::string_view header) noexcept {
  if (header.size() < kBytes) return {};
  for (const std::size_t dash : {kTraceAt - 1, kSpanAt - 1, kFlagsAt - 1}) {
    if (header[dash] != '-') return {};
  }
  std::array<std::uint8_t, 1> version{};
  std::array<std::uint8_t, 1> flags{};
  TraceParent parent;
  const bool is_hex = read_hex(header.substr(kVersionAt, 2), version) &&
                      read_hex(header.substr(kTraceAt, 2 * parent.trace.size()), parent.trace) &&
                      read_hex(header.substr(kSpanAt, 2 * parent.span.size()), parent.span) &&
                      read_hex(header.substr(kFlagsAt, 2), flags);
  if (!is_hex || version[0] == kNoVersion) return {};
  // Later versions may have further fields after another dash; version 00 has none.
  const bool is_long = header.size() > kBytes;
  if (is_long && (version[0] == 0 || header[kBytes] != '-')) return {};
  if (is_zero(parent.trace) || is_zero(parent.span) || (flags[0] & kSampled) == 0) return {};
  return parent;
}

void Traces::add(const Inference& inference, int status, Time ended) noexcept {
  // Wall clocks can jump, so each trace is converted with the clock's offset at its end.
  const auto wall = std::chrono::system_clock::now().time_since_epoch();
  const auto offset = std::chrono::duration_cast<Duration>(wall) - SteadyClock::now();
  const auto at = [&](Time time) { return time == Time{} ? 0 : (time + offset).count(); };
  try {
    RequestTrace trace{.parent = *inference.trace,
                       .model = inference.served->model.name,
                       .version = inference.served->model.version,
                       .protocol = inference.protocol == Protocol::grpc ? "grpc" : "http",
                       .high = inference.priority == Priority::high,
                       .status = status,
                       .queries = inference.batch,
                       .arrived = at(inference.arrived),
                       .began = at(inference.began),
                       .submitted = at(inference.submitted_at),
                       .back = at(inference.back_at),
                       .ended = at(ended)};
    const std::lock_guard locked(mutex_);
    if (waiting_.size() < most_ && !closed_) {
      waiting_.push_back(std::move(trace));
      changed_.notify_one();
      return;
    }
    dropped_.fetch_add(1, std::memory_order_relaxed);
  } catch (const std::exception&) {  // out of memory
    dropped_.fetch_add(1, std::memory_order_relaxed);
  }
}

std::vector<RequestTrace> Traces::take(std::size_t most, Duration limit) {
  std::unique_lock locked(mutex_);
  changed_.wait_for(locked, limit, [this] { return closed_ || !waiting_.empty(); });
  const auto end = waiting_.begin() + static_cast<std::ptrdiff_t>(std::min(most, waiting_.size()));
  std::vector<RequestTrace> taken(std::make_move_iterator(waiting_.begin()), std::make_move_iterator(end));
  waiting_.erase(waiting_.begin(), end);
  return taken;
}

void Traces::close() noexcept {
  const std::lock_guard locked(mutex_);
  closed_ = true;
  changed_.notify_all();
}

}  // namespace headrace::wire
