#pragma once

#include <vector>

#include "headrace/device/stream.hpp"

namespace headrace::detail {

/// Work of the user that uses a span, tracked by events recorded after it.
class WorkInFlight {
 public:
  [[nodiscard]] Status add(StreamRef stream);
  /// True if all of it is done. Work on a failed device counts as done, because nothing will run there any more.
  [[nodiscard]] bool done() noexcept;
  void wait() noexcept;

 private:
  struct Mark {
    Device device;
    Event event;
  };
  std::vector<Mark> marks_;
};

}  // namespace headrace::detail
