#pragma once

#include <nanobind/nanobind.h>

#include <optional>
#include <string>
#include <variant>

#include "headrace/device/span.hpp"
#include "headrace/device/stream.hpp"

/// The Python form of a span. It counts the arrays over its memory, so that the memory is not freed while they exist.
namespace headrace::python {

class SpanHandle {
 public:
  explicit SpanHandle(Span owned) noexcept : span_(std::move(owned)) {}

  [[nodiscard]] Span& span() noexcept { return span_; }
  [[nodiscard]] const Span& span() const noexcept { return span_; }

  /// Throws UsageError while arrays of the host exist and the change would reduce its rights.
  void allow_host(Right right, std::optional<PageRange> pages);
  /// Moves on its own stream. Throws UsageError while arrays of the host exist over pages that could leave its reach.
  void move(const Placement& placement);
  void move(PageRange pages, Place to);
  /// Throws UsageError while any array over it exists.
  void release();

  /// Whether the host may write all of it. Throws UsageError, naming the first page, if it may not even read.
  [[nodiscard]] bool require_host_readable() const;
  /// The same for the span's device.
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
  int host_views_ = 0;  ///< Guarded by the GIL, like the other count.
  int device_views_ = 0;
};

/// A place, its device, or the name of either.
using PlaceOrName = std::variant<Place, Device, std::string>;

/// Throws UsageError if no place has this name.
[[nodiscard]] Place to_place(const PlaceOrName& place);

/// Adds the protocols and methods that make arrays over a span: __dlpack__, __cuda_array_interface__, numpy(), array().
void bind_span_arrays(nanobind::class_<SpanHandle>& span);

/// The slots of the buffer protocol.
[[nodiscard]] PyType_Slot* span_buffer_slots() noexcept;

}  // namespace headrace::python
