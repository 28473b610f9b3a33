#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string_view>

#include "bindings.hpp"
#include "convert.hpp"
#include "gil.hpp"
#include "headrace/base/error.hpp"
#include "measure/link_costs.hpp"
#include "measure/link_latency.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace headrace::python {

namespace {

using measure::AtomicsResult;
using measure::BatchedSend;
using measure::ChaseResult;
using measure::CounterCheck;
using measure::FarMemory;
using measure::HiddenWork;
using measure::HidingCurve;
using measure::HidingPoint;
using measure::OwnerCache;
using measure::PeerCosts;

using OptionalDevice = std::optional<DeviceOrName>;

std::optional<Device> to_peer(const OptionalDevice& peer) {
  return peer ? std::optional(to_device(*peer)) : std::nullopt;
}

HiddenWork to_work(std::string_view text) {
  if (text == "loads") return HiddenWork::loads;
  if (text == "arithmetic") return HiddenWork::arithmetic;
  throw UsageError("work must be loads or arithmetic, not '" + std::string(text) + "'");
}

template <class Owner, Duration Owner::* Field>
double seconds(const Owner& owner) {
  return to_seconds(owner.*Field);
}

void bind_chase(nb::module_& module) {
  nb::class_<ChaseResult>(module, "ChaseResult", "The latency of a load that depends on the previous one.")
      .def_ro("nanoseconds", &ChaseResult::nanoseconds)
      .def_ro("least", &ChaseResult::least)
      .def_ro("most", &ChaseResult::most)
      .def_ro("cycles", &ChaseResult::cycles, "Cycles of the multiprocessor's clock; None on a CPU device.")
      .def_ro("verified", &ChaseResult::verified)
      .def_ro("note", &ChaseResult::note);
  module.def(
      "chase",
      [](const DeviceOrName& device, const std::string& memory, const OptionalDevice& peer, std::size_t bytes,
         std::size_t stride_bytes, bool first_cache, std::uint32_t steps, int samples) {
        const measure::ChaseOptions options{.memory = measure::parse_far_memory(memory),
                                            .peer = to_peer(peer),
                                            .bytes = bytes,
                                            .stride_bytes = stride_bytes,
                                            .first_cache = first_cache,
                                            .steps = steps,
                                            .samples = samples};
        const Device chosen = to_device(device);
        const GilRelease released;
        return measure::measure_chase(chosen, options);
      },
      "device"_a, "memory"_a = "local", "peer"_a = nb::none(), "bytes"_a = 1 << 20, "stride_bytes"_a = 128,
      "first_cache"_a = true, "steps"_a = 1 << 14, "samples"_a = 5,
      "One thread follows a chain of addresses in random order through local, peer or host memory.");
  nb::class_<OwnerCache>(module, "OwnerCache",
                         "Which device's L2 caches data that is read over a link; nanoseconds a step.")
      .def_ro("swept", &OwnerCache::swept)
      .def_ro("after_owner", &OwnerCache::after_owner)
      .def_ro("after_reader", &OwnerCache::after_reader)
      .def_ro("verified", &OwnerCache::verified)
      .def_ro("note", &OwnerCache::note);
  module.def(
      "owner_cache",
      [](const DeviceOrName& reader, const DeviceOrName& owner, int samples) {
        const Device reads = to_device(reader);
        const Device owns = to_device(owner);
        const GilRelease released;
        return measure::measure_owner_cache(reads, owns, samples);
      },
      "reader"_a, "owner"_a, "samples"_a = 5,
      "Follows a chain in the owner's memory with caches swept, after the owner and after the reader has followed it.");
}

void bind_atomics(nb::module_& module) {
  nb::class_<AtomicsResult>(module, "AtomicsResult", "Additions to the same words, per second.")
      .def_ro("local_per_second", &AtomicsResult::local_per_second)
      .def_ro("remote_per_second", &AtomicsResult::remote_per_second)
      .def_ro("together_per_second", &AtomicsResult::together_per_second)
      .def_ro("verified", &AtomicsResult::verified, "Whether every word is the sum of what was added to it.")
      .def_ro("note", &AtomicsResult::note);
  module.def(
      "peer_atomics",
      [](const DeviceOrName& owner, const DeviceOrName& other, int samples) {
        const Device owns = to_device(owner);
        const Device adds = to_device(other);
        const GilRelease released;
        return measure::measure_peer_atomics(owns, adds, samples);
      },
      "owner"_a, "other"_a, "samples"_a = 5, "Both devices add to words on `owner`.");
  module.def(
      "host_atomics",
      [](const DeviceOrName& device, int samples) {
        const Device chosen = to_device(device);
        const GilRelease released;
        return measure::measure_host_atomics(chosen, samples);
      },
      "device"_a, "samples"_a = 5, "Device and host add to words in host memory; \"local\" is the host.");
}

void bind_hiding(nb::module_& module) {
  nb::class_<HidingPoint>(module, "HidingPoint", "Nanoseconds of a far load with work before its use.")
      .def_ro("count", &HidingPoint::count)
      .def_ro("far_only", &HidingPoint::far_only)
      .def_ro("work_only", &HidingPoint::work_only)
      .def_ro("both", &HidingPoint::both)
      .def_ro("hidden", &HidingPoint::hidden, "The part of the shorter one that the longer one hid.");
  nb::class_<HidingCurve>(module, "HidingCurve", "How much work hides behind a far load.")
      .def_ro("points", &HidingCurve::points)
      .def_ro("verified", &HidingCurve::verified)
      .def_ro("note", &HidingCurve::note);
  module.def(
      "hiding",
      [](const DeviceOrName& device, const std::string& memory, const OptionalDevice& peer, const std::string& work,
         int samples) {
        const Device chosen = to_device(device);
        const auto other = to_peer(peer);
        const FarMemory far = measure::parse_far_memory(memory);
        const HiddenWork hidden = to_work(work);
        const GilRelease released;
        return measure::measure_hiding(chosen, far, other, hidden, samples);
      },
      "device"_a, "memory"_a = "host", "peer"_a = nb::none(), "work"_a = "loads", "samples"_a = 5,
      "Times a load from far memory with 0 to 32 local loads, or 0 to 4,096 arithmetic steps, before its use. `work` "
      "is "
      "loads or arithmetic.");
}

void bind_costs(nb::module_& module) {
  nb::class_<BatchedSend>(module, "BatchedSend", "Many small copies against one large one; seconds.")
      .def_ro("pieces", &BatchedSend::pieces)
      .def_ro("piece_bytes", &BatchedSend::piece_bytes)
      .def_prop_ro("each", &seconds<BatchedSend, &BatchedSend::each>, "One call for each piece.")
      .def_prop_ro("whole", &seconds<BatchedSend, &BatchedSend::whole>, "One call for all.")
      .def_prop_ro("batch", &seconds<BatchedSend, &BatchedSend::batch>, "The pieces through a CopyBatch.")
      .def_ro("samples", &BatchedSend::samples)
      .def_ro("verified", &BatchedSend::verified);
  module.def(
      "batched_send",
      [](const DeviceOrName& device, std::size_t pieces, std::size_t piece_bytes, int samples) {
        const Device chosen = to_device(device);
        const GilRelease released;
        return measure::measure_batched_send(chosen, pieces, piece_bytes, samples);
      },
      "device"_a, "pieces"_a = 512, "piece_bytes"_a = 1024, "samples"_a = 9,
      "Sends pieces from the host one by one, as one copy and as a batch. Raises UsageError for no pieces, and for "
      "sizes "
      "that are no multiple of 16.");
  nb::class_<PeerCosts>(module, "PeerCosts",
                        "The costs of access to another device's memory; seconds, bytes per second.")
      .def_ro("note", &PeerCosts::note)
      .def_ro("copy_without", &PeerCosts::copy_without)
      .def_ro("copy_with", &PeerCosts::copy_with)
      .def_prop_ro("enable", &seconds<PeerCosts, &PeerCosts::enable>)
      .def_ro("allocations", &PeerCosts::allocations)
      .def_ro("allocation_bytes", &PeerCosts::allocation_bytes)
      .def_prop_ro("allocate_without", &seconds<PeerCosts, &PeerCosts::allocate_without>)
      .def_prop_ro("allocate_with", &seconds<PeerCosts, &PeerCosts::allocate_with>)
      .def_ro("span_pages", &PeerCosts::span_pages)
      .def_prop_ro("allow", &seconds<PeerCosts, &PeerCosts::allow>)
      .def_ro("span_note", &PeerCosts::span_note);
  module.def(
      "peer_costs",
      [](const DeviceOrName& device, const DeviceOrName& peer, int samples) {
        const Device chosen = to_device(device);
        const Device other = to_device(peer);
        const GilRelease released;
        return measure::measure_peer_costs(chosen, other, samples);
      },
      "device"_a, "peer"_a, "samples"_a = 5,
      "What copies, allocations and spans cost with and without access to a peer's memory.");
  nb::class_<CounterCheck>(module, "CounterCheck", "NVLink's counters after a known transfer.")
      .def_ro("note", &CounterCheck::note)
      .def_ro("moved_bytes", &CounterCheck::moved_bytes)
      .def_ro("received_bytes", &CounterCheck::received_bytes)
      .def_ro("sent_bytes", &CounterCheck::sent_bytes)
      .def_ro("rate", &CounterCheck::rate);
  module.def(
      "counters",
      [](const DeviceOrName& device, const DeviceOrName& peer, std::uint64_t bytes) {
        const Device chosen = to_device(device);
        const Device other = to_device(peer);
        const GilRelease released;
        return measure::measure_counters(chosen, other, bytes);
      },
      "device"_a, "peer"_a, "bytes"_a = std::uint64_t{4} << 30U,
      "Copies this many bytes in pieces of 64 MiB over NVLink and compares its counters.");
}

}  // namespace

void bind_link_latency(nb::module_& module) {
  bind_chase(module);
  bind_atomics(module);
  bind_hiding(module);
  bind_costs(module);
}

}  // namespace headrace::python
