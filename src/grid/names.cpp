#include "base/names.hpp"

#include "headrace/grid/detail/timeline.hpp"
#include "headrace/grid/fdtd.hpp"
#include "headrace/grid/simulation.hpp"

/// The names of this module's enumerations.
namespace headrace::grid {

namespace {

constexpr auto kPushes = names_of<Push>(
    "a push", {{Push::automatic, "automatic"}, {Push::store, "store"}, {Push::copy, "copy"}, {Push::host, "host"}});
constexpr auto kModes = names_of<Mode>("a mode", {{Mode::streams, "streams"}, {Mode::resident, "resident"}});
constexpr auto kPasses = names_of<Passes>(
    "a use of passes", {{Passes::automatic, "automatic"}, {Passes::never, "never"}, {Passes::always, "always"}});
constexpr auto kPrecisions =
    names_of<Precision>("a precision", {{Precision::fp32, "single"}, {Precision::fp64, "double"}});
constexpr auto kPolarisations =
    names_of<Polarisation>("a polarisation", {{Polarisation::tm, "tm"}, {Polarisation::te, "te"}});
constexpr auto kWorks = names_of<Work>("a kind of work", {{Work::body, "body"},
                                                          {Work::border, "border"},
                                                          {Work::push, "push"},
                                                          {Work::messages, "messages"},
                                                          {Work::receive, "receive"},
                                                          {Work::interior, "interior"}});

}  // namespace

std::string_view to_string(Push push) noexcept { return kPushes.of(push); }
Push parse_push(std::string_view text) { return kPushes.parse(text); }
std::string_view to_string(Mode mode) noexcept { return kModes.of(mode); }
Mode parse_mode(std::string_view text) { return kModes.parse(text); }
std::string_view to_string(Passes passes) noexcept { return kPasses.of(passes); }
Passes parse_passes(std::string_view text) { return kPasses.parse(text); }
std::string_view to_string(Precision precision) noexcept { return kPrecisions.of(precision); }
Precision parse_precision(std::string_view text) { return kPrecisions.parse(text); }
std::string_view to_string(Polarisation polarisation) noexcept { return kPolarisations.of(polarisation); }
Polarisation parse_polarisation(std::string_view text) { return kPolarisations.parse(text); }
std::string_view to_string(Work work) noexcept { return kWorks.of(work); }

}  // namespace headrace::grid
