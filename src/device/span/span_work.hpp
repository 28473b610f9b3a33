#pragma once

#include <vector>

#include "headrace/device/stream.hpp"

namespace headrace::detail {

/// Work of others that uses a span, as events behind it.
class WorkInFlight {
 public:
  [[nodiscard]] Status add(StreamRef stream);
  /// True when all of it is done. A failed device counts as done: nothing will run on it any more.
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
