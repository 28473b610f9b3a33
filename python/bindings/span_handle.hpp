#pragma once

#include <nanobind/nanobind.h>

#include <optional>
#include <string>
#include <variant>

#include "headrace/device/span.hpp"
#include "headrace/device/stream.hpp"

/// A span as Python has it: with the arrays that look at its memory counted, so that it is not taken from under them.
namespace headrace::python {

class SpanHandle {
 public:
  explicit SpanHandle(Span owned) noexcept : span_(std::move(owned)) {}

  [[nodiscard]] Span& span() noexcept { return span_; }
  [[nodiscard]] const Span& span() const noexcept { return span_; }

  /// Throws UsageError while the host looks at it and could then do less than now.
  void allow_host(Right right, std::optional<PageRange> pages);
  /// Moves on a stream of its own. Throws UsageError while the host looks at pages that could leave its reach.
  void move(const Placement& placement);
  void move(PageRange pages, Place to);
  /// Throws UsageError while any array looks at it.
  void release();

  /// Whether the host may write all of it. Throws UsageError, naming the first page, when it may not even read.
  [[nodiscard]] bool require_host_readable() const;
  /// Whether the span's device may write all of it; the same.
  [[nodiscard]] bool require_device_readable() const;

  void host_view_starts() noexcept { ++host_views_; }
  void host_view_ends() noexcept { --host_views_; }
  void device_view_starts() noexcept { ++device_views_; }
  void device_view_ends() noexcept { --device_views_; }

 private:
  [[nodiscard]] Stream& stream();
  void require_no_view_lost() const;

  Span span_;
  std::optional<Stream> stream_;
  int host_views_ = 0;  ///< Under Python's lock, as the other.
  int device_views_ = 0;
};

/// A place, the device that it is on, or the name of either.
using PlaceOrName = std::variant<Place, Device, std::string>;

/// Throws UsageError for a name that no place has.
[[nodiscard]] Place to_place(const PlaceOrName& place);

/// Adds what gives arrays over the memory of a span: __dlpack__, __cuda_array_interface__, numpy(), array().
void bind_span_arrays(nanobind::class_<SpanHandle>& span);

/// The slots of the buffer protocol.
[[nodiscard]] PyType_Slot* span_buffer_slots() noexcept;

}  // namespace headrace::python
