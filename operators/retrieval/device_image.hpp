#pragma once

#include <cstdint>
#include <vector>

#include "headrace/operators/index.hpp"
#include "headrace/operators/retrieval_evaluate.hpp"

namespace headrace::operators {

/// An index in the form that the operator reads: the short lists of rare terms, and bitmaps of frequent ones.
struct DeviceImage {
  std::vector<boolean::TermEntry> entries;
  std::vector<std::uint64_t> words;
};

[[nodiscard]] DeviceImage make_device_image(const Index& index);

/// The operator's state over an image that lies at these places.
[[nodiscard]] boolean::Postings make_postings(const Index& index, const void* entries, const void* words) noexcept;

}  // namespace headrace::operators
