#pragma once

// A Stream runs copies, kernels and calls on a device in the order in which they were enqueued; an Event marks a point
// in one. Enqueueing returns at once.
//
//     headrace::Stream stream(headrace::Device::parse("best"));
//     std::vector<float> from(1024, 1.0F), to(1024);
//     headrace::Event copied(stream.device());
//     stream.copy(to.data(), from.data(), from.size() * sizeof(float)).or_throw("copying");
//     stream.record(copied).or_throw("marking the copy");
//     copied.wait().or_throw("copying");

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "headrace/base/detail/clock.hpp"
#include "headrace/base/result.hpp"
#include "headrace/device/detail/copy_route.hpp"
#include "headrace/device/device.hpp"

namespace headrace {

struct Kernel;
struct LaunchShape;
class EventRef;

namespace detail {
class StreamBackend;
class EventBackend;
}  // namespace detail

/// One copy of many; see StreamRef::copy_many.
struct Copy {
  void* to;           ///< The destination.
  const void* from;   ///< The source.
  std::size_t bytes;  ///< How many bytes.
};

/// A copy of rows that lie at equal distances on each side; see StreamRef::copy_rows.
struct RowCopies {
  void* to;                ///< The first row of the destination.
  const void* from;        ///< The first row of the source.
  std::size_t to_pitch;    ///< Bytes from one row of the destination to the next; at least row_bytes.
  std::size_t from_pitch;  ///< The same for the source.
  std::size_t row_bytes;   ///< Bytes copied of each row.
  std::size_t count;       ///< Rows.
};

/// The priority of a stream's kernels on its device. CPU devices ignore it.
enum class Priority : std::uint8_t {
  normal,  ///< The device's default.
  high,    ///< Blocks start before those of normal streams; running blocks are not interrupted.
};

/// How a Stream is made.
struct StreamOptions {
  Priority priority = Priority::normal;  ///< Relative to the device's other streams.
  /// On a CPU device: work runs in the thread that waits for the stream or one of its events, not on the device's
  /// worker threads, and so starts only with the wait. This saves two thread switches if the same thread enqueues and
  /// waits. No effect on a CUDA device.
  bool run_in_waiter = false;
};

/// Borrowed view of a stream: work on it runs in the order in which it was enqueued, asynchronously to the caller.
/// Enqueueing and waiting from several threads is safe; the order is then that of the calls.
class StreamRef {
 public:
  StreamRef(std::nullptr_t) = delete;
  /// For Headrace's own use: a view of that stream.
  explicit StreamRef(detail::StreamBackend& backend) noexcept : backend_(&backend) {}

  /// The device that runs the stream's work.
  [[nodiscard]] Device device() const noexcept;

  /// Enqueues a copy between any two places that the device or the host can reach. Both must stay valid until it is
  /// done. With pageable host memory the call may wait for the copy, as CUDA does.
  [[nodiscard]] Status copy(void* to, const void* from, std::size_t bytes) const noexcept;
  /// Enqueues many copies at once, in any order, by the device's fastest route, or by `route`. The list is read before
  /// the call returns. Returns Errc::not_supported if the route cannot do it: `merged` needs the staging of a
  /// CopyBatch; `gather` needs memory that kernels reach on both sides, and no resident kernel on the device;
  /// `batch_call` needs a CUDA device.
  [[nodiscard]] Status copy_many(std::span<const Copy> copies, CopyRoute route = CopyRoute::automatic) const noexcept;
  /// Enqueues the copy of all rows as one (cudaMemcpy2DAsync on a CUDA device), with the requirements of copy().
  /// Returns Errc::invalid_argument if rows of one side overlap.
  [[nodiscard]] Status copy_rows(const RowCopies& rows) const noexcept;
  /// Enqueues setting `bytes` bytes from `to` on to `value`. The device must reach the memory.
  [[nodiscard]] Status fill(void* to, unsigned char value, std::size_t bytes) const noexcept;
  /// Enqueues a kernel by the addresses of its arguments; launch() in kernel.hpp is the typed form. Each address must
  /// be that of a value of the type that the kernel was made with; values are copied. Returns Errc::invalid_argument
  /// for a wrong number of addresses.
  [[nodiscard]] Status launch(const Kernel& kernel, LaunchShape shape, std::span<void* const> arguments) const noexcept;
  /// Enqueues a kernel that stays until it is told to stop, with all its blocks resident at once; see launch_resident()
  /// in kernel.hpp, which is the typed form. Errors are those of launch(), and Errc::not_supported if the blocks do not
  /// fit.
  [[nodiscard]] Status launch_resident(const Kernel& kernel, LaunchShape shape,
                                       std::span<void* const> arguments) const noexcept;
  /// Calls `function(argument)` on a thread of the runtime once all work before it is done. It must not call Headrace.
  [[nodiscard]] Status call(void (*function)(void*), void* argument) const noexcept;
  /// Marks this point of the stream in `event`.
  [[nodiscard]] Status record(EventRef event) const noexcept;
  /// Holds back work enqueued later until `event`, as last recorded, has happened.
  [[nodiscard]] Status wait_for(EventRef event) const noexcept;

  /// True if all work is done. Returns the device's error if it failed.
  [[nodiscard]] Result<bool> ready() const noexcept;
  /// Blocks until all work enqueued so far is done. Returns the device's error if it failed.
  [[nodiscard]] Status wait() const noexcept;

  /// For Headrace's own use: the object that does the work.
  [[nodiscard]] detail::StreamBackend& backend() const noexcept { return *backend_; }

 private:
  friend class Stream;
  StreamRef() noexcept = default;
  detail::StreamBackend* backend_ = nullptr;
};

/// Owns a stream of a device. Destruction waits for the work on it.
class Stream : public StreamRef {
 public:
  /// Throws DeviceError if the device refuses.
  explicit Stream(Device device, StreamOptions options = {});
  Stream(Stream&& other) noexcept;
  Stream& operator=(Stream&& other) noexcept;
  ~Stream();

 private:
  std::unique_ptr<detail::StreamBackend> owned_;
};

/// Borrowed view of an event: a point in a stream.
class EventRef {
 public:
  EventRef(std::nullptr_t) = delete;
  /// For Headrace's own use: a view of that event.
  explicit EventRef(detail::EventBackend& backend) noexcept : backend_(&backend) {}

  /// True if the work before the point, as last recorded, is done. An event never recorded is ready. Returns the
  /// device's error if it failed.
  [[nodiscard]] Result<bool> ready() const noexcept;
  /// Blocks until the work before the point, as last recorded, is done. Returns the device's error if it failed.
  [[nodiscard]] Status wait() const noexcept;

  /// For Headrace's own use: the object that does the work.
  [[nodiscard]] detail::EventBackend& backend() const noexcept { return *backend_; }

 private:
  friend class Event;
  EventRef() noexcept = default;
  detail::EventBackend* backend_ = nullptr;
};

/// Whether an event records the device's time, which Event::since() needs.
enum class EventTiming : std::uint8_t {
  off,  ///< Cheaper.
  on,   ///< Both events of an interval need it.
};

/// Owns an event of a device.
class Event : public EventRef {
 public:
  /// Throws DeviceError if the device refuses.
  explicit Event(Device device, EventTiming timing = EventTiming::off);
  /// As the constructor, but returns the error instead of throwing.
  [[nodiscard]] static Result<Event> create(Device device, EventTiming timing = EventTiming::off) noexcept;
  Event(Event&& other) noexcept;
  Event& operator=(Event&& other) noexcept;
  ~Event();

  /// Device time from `earlier` to this event. Returns Errc::invalid_argument unless both have EventTiming::on and are
  /// ready.
  [[nodiscard]] Result<Duration> since(const Event& earlier) const noexcept;

 private:
  Event() noexcept;
  std::unique_ptr<detail::EventBackend> owned_;
};

}  // namespace headrace
