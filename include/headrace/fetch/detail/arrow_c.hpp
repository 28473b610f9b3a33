#pragma once

#include <cstdint>
#include <utility>

// The Arrow C data interface, https://arrow.apache.org/docs/format/CDataInterface.html. The names and the include guard
// are those of the specification, so that this copy agrees with any other.
#ifndef ARROW_C_DATA_INTERFACE
#define ARROW_C_DATA_INTERFACE

#define ARROW_FLAG_DICTIONARY_ORDERED 1
#define ARROW_FLAG_NULLABLE 2
#define ARROW_FLAG_MAP_KEYS_SORTED 4

extern "C" {

// NOLINTBEGIN(readability-identifier-naming)
struct ArrowSchema {
  const char* format;
  const char* name;
  const char* metadata;
  std::int64_t flags;
  std::int64_t n_children;
  struct ArrowSchema** children;
  struct ArrowSchema* dictionary;
  void (*release)(struct ArrowSchema*);
  void* private_data;
};

struct ArrowArray {
  std::int64_t length;
  std::int64_t null_count;
  std::int64_t offset;
  std::int64_t n_buffers;
  std::int64_t n_children;
  const void** buffers;
  struct ArrowArray** children;
  struct ArrowArray* dictionary;
  void (*release)(struct ArrowArray*);
  void* private_data;
};
// NOLINTEND(readability-identifier-naming)

}  // extern "C"

#endif  // ARROW_C_DATA_INTERFACE

#ifndef ARROW_C_STREAM_INTERFACE
#define ARROW_C_STREAM_INTERFACE

extern "C" {

// NOLINTBEGIN(readability-identifier-naming)
struct ArrowArrayStream {
  int (*get_schema)(struct ArrowArrayStream*, struct ArrowSchema* out);
  int (*get_next)(struct ArrowArrayStream*, struct ArrowArray* out);
  const char* (*get_last_error)(struct ArrowArrayStream*);
  void (*release)(struct ArrowArrayStream*);
  void* private_data;
};
// NOLINTEND(readability-identifier-naming)

}  // extern "C"

#endif  // ARROW_C_STREAM_INTERFACE

namespace headrace::fetch {

/// Owns an ArrowArray or ArrowSchema and releases it on destruction. Holds none when default-constructed.
template <class Struct>
class ArrowOwned {
 public:
  ArrowOwned() noexcept = default;
  /// Takes over what `from` holds and marks it as released, as the interface's move does.
  explicit ArrowOwned(Struct& from) noexcept : held_(from) { from.release = nullptr; }
  ArrowOwned(ArrowOwned&& other) noexcept : held_(std::exchange(other.held_, Struct{})) {}
  ArrowOwned& operator=(ArrowOwned&& other) noexcept {
    if (this != &other) {
      reset();
      held_ = std::exchange(other.held_, Struct{});
    }
    return *this;
  }
  ~ArrowOwned() { reset(); }

  [[nodiscard]] bool empty() const noexcept { return held_.release == nullptr; }
  [[nodiscard]] const Struct& operator*() const noexcept { return held_; }
  [[nodiscard]] const Struct* operator->() const noexcept { return &held_; }
  /// For a producer to fill. Only while empty.
  [[nodiscard]] Struct* out() noexcept { return &held_; }
  void reset() noexcept {
    if (held_.release != nullptr) held_.release(&held_);
    held_ = {};
  }

 private:
  Struct held_{};
};

using OwnedArray = ArrowOwned<ArrowArray>;
using OwnedSchema = ArrowOwned<ArrowSchema>;

}  // namespace headrace::fetch
