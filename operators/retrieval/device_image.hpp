#pragma once

#include <cstdint>
#include <vector>

#include "headrace/operators/detail/retrieval_postings.hpp"
#include "headrace/operators/index.hpp"

namespace headrace::operators {

/// An index in the format that the operator reads: every term's list, and bitmaps of frequent terms.
struct DeviceImage {
  std::vector<boolean::TermEntry> entries;
  std::vector<boolean::Vector> lists;
  std::vector<boolean::Vector> bitmaps;  ///< The first one is empty.
};

/// Throws DataError if the lists would take more than 64 GiB.
[[nodiscard]] DeviceImage make_device_image(const Index& index);

/// The operator's state for an image at these addresses.
[[nodiscard]] boolean::Postings make_postings(const Index& index, const void* entries, const void* lists,
                                              const void* bitmaps) noexcept;

/// The state for an image in host memory, where it was made.
[[nodiscard]] inline boolean::Postings make_postings(const Index& index, const DeviceImage& image) noexcept {
  return make_postings(index, image.entries.data(), image.lists.data(), image.bitmaps.data());
}

}  // namespace headrace::operators
