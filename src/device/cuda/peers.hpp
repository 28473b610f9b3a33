#pragma once

#include <array>
#include <mutex>

#include "headrace/base/result.hpp"

namespace headrace::detail::cuda {

/// Reference-counted peer access of one device, because CUDA knows only on and off.
class Peers {
 public:
  explicit Peers(int ordinal) noexcept : ordinal_(ordinal) {}

  [[nodiscard]] bool reaches(int peer) const noexcept;
  [[nodiscard]] Status enable(int peer) noexcept;
  void disable(int peer) noexcept;

 private:
  struct Use {
    int count = 0;
    bool ours = false;  ///< Headrace enabled it; other code had not.
  };
  static constexpr std::size_t kPeersMax = 128;

  const int ordinal_;
  std::mutex mutex_;
  std::array<Use, kPeersMax> uses_{};  ///< Under mutex_.
};

}  // namespace headrace::detail::cuda
