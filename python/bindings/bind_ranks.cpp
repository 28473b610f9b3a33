#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "bindings.hpp"
#include "gil.hpp"
#include "headrace/grid/detail/ranks.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace headrace::python {

namespace {

using grid::Ranks;

/// Text is padded, because all ranks must give the same number of bytes.
constexpr std::size_t kTextMax = 256;

[[nodiscard]] std::vector<std::int64_t> agree(Ranks& ranks, const std::vector<std::int64_t>& numbers) {
  const GilRelease released;
  const auto all = grid::gather_for(ranks, "agreeing with other ranks", std::as_bytes(std::span(numbers)));
  std::vector<std::int64_t> first(numbers.size());
  std::copy_n(all.begin(), first.size() * sizeof(std::int64_t), std::as_writable_bytes(std::span(first)).begin());
  return first;
}

[[nodiscard]] std::vector<std::string> gather(Ranks& ranks, const std::string& text) {
  const GilRelease released;
  std::array<char, kTextMax> padded{};
  std::copy_n(text.begin(), std::min(text.size(), kTextMax - 1), padded.begin());
  std::vector<std::string> found;
  for (const auto& one : grid::of_all_ranks(&ranks, "asking other ranks", padded)) found.emplace_back(one.data());
  return found;
}

}  // namespace

void bind_ranks(nb::module_& module) {
  nb::class_<Ranks>(module, "Ranks", "The processes that share a domain.")
      .def_prop_ro("rank", &Ranks::rank, "The rank of this process, from 0.")
      .def_prop_ro("count", &Ranks::count)
      .def_prop_ro("rank_on_machine", &Ranks::rank_on_machine,
                   "The rank of this process among those on the same machine.")
      .def_prop_ro("takes_device_memory", &Ranks::takes_device_memory,
                   "Whether borders go directly between the memories of CUDA devices instead of through the host's.")
      .def_prop_ro("failure", &Ranks::failure, "Which rank failed, and why; None if none has.")
      .def("fail", &Ranks::fail, "why"_a, nb::call_guard<GilRelease>(),
           "Tells all ranks that this one cannot continue.")
      .def("agree", &agree, "numbers"_a, "The numbers of rank 0, on all ranks. All ranks call it, with the same count.")
      .def("gather", &gather, "text"_a, "The bytes of each rank, in rank order, on all ranks; at most 255 bytes each.");
}

}  // namespace headrace::python
