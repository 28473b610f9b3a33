#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "headrace/grid/stencil.hpp"

/// Stencils that reach further on one side than on the other, read across corners, and have several phases.
namespace headrace::testing {

/// Reads at different distances along every axis and across corners; knows its place and time.
template <class T>
struct Skewed {
  static constexpr const char* kName = "skewed";
  using Value = T;
  enum Fields : int { now, next };
  static constexpr int kFields = 2;
  static constexpr std::array kPhases{grid::Phase{.writes = grid::fields(next),
                                                  .reads = grid::fields(now),
                                                  .neighbours = grid::fields(now),
                                                  .reach = {.low = {2, 1, 1}, .high = {1, 2, 1}}}};
  static constexpr std::array kSwaps{grid::Swap{now, next}};

  T share;

  template <int PhaseNumber, class Cell>
  HEADRACE_HD void update(Cell cell) const {
    const T about = cell.get(now, -2, 0, 0) - cell.get(now, 1, -1, 0) + cell.get(now, -1, 2, 1) +
                    cell.get(now, 0, 0, -1) - cell.get(now, 1, 2, -1);
    const auto place = static_cast<T>(cell.x() + 2 * cell.y() + 3 * cell.z() + cell.extent(0));
    const T when = static_cast<T>(cell.step() % 7);
    cell.set(next, cell.get(now) * share + about * share + place * T(0.001) + when);
  }
};

/// Two fields that drive each other in place, a constant field, and two phases restricted to boxes: one adds, the other
/// records a cell's value.
template <class T>
struct Driven {
  static constexpr const char* kName = "driven";
  using Value = T;
  enum Fields : int { u, v, stiffness, memory };
  static constexpr int kFields = 4;
  static constexpr std::array kPhases{
      grid::Phase{.writes = grid::fields(v),
                  .reads = grid::fields(v, stiffness),
                  .neighbours = grid::fields(u),
                  .reach = {.low = {0, 0, 0}, .high = {1, 1, 1}}},
      grid::Phase{.writes = grid::fields(v, memory),
                  .reads = grid::fields(v, memory),
                  .neighbours = grid::fields(u),
                  .reach = {.low = {0, 0, 0}, .high = {1, 0, 0}}},
      grid::Phase{.writes = grid::fields(u),
                  .reads = grid::fields(u, stiffness),
                  .neighbours = grid::fields(v),
                  .reach = {.low = {1, 1, 1}, .high = {0, 0, 0}}},
      grid::Phase{.writes = grid::fields(u), .reads = grid::fields(u), .neighbours = {}, .reach = {}},
      grid::Phase{.writes = {}, .reads = grid::fields(u), .neighbours = {}, .reach = {}},
  };

  T share;
  T* trace;  ///< The trace of each step; in memory of the part's device.

  template <int PhaseNumber, class Cell>
  HEADRACE_HD void update(Cell cell) const {
    if constexpr (PhaseNumber == 0) {
      const T slope = cell.get(u, 1, 0, 0) - cell.get(u, 0, 1, 0) + cell.get(u, 0, 0, 1);
      cell.set(v, cell.get(v) + cell.get(stiffness) * slope);
    } else if constexpr (PhaseNumber == 1) {
      const T kept = cell.get(memory) * T(0.5) + cell.get(u, 1, 0, 0);
      cell.set(memory, kept);
      cell.set(v, cell.get(v) - share * kept);
    } else if constexpr (PhaseNumber == 2) {
      const T slope = cell.get(v, -1, 0, 0) - cell.get(v, 0, -1, 0) + cell.get(v, 0, 0, -1);
      cell.set(u, (cell.get(u) - cell.get(stiffness) * slope) * T(0.75));
    } else if constexpr (PhaseNumber == 3) {
      cell.set(u, cell.get(u) + static_cast<T>(cell.step() % 5) - T(2));
    } else {
      if (cell.owned()) trace[cell.step()] = cell.get(u);
    }
  }
};

/// Like Skewed in a plane, done in passes.
template <class T>
struct Leaning {
  static constexpr const char* kName = "leaning";
  using Value = T;
  enum Fields : int { now, next };
  static constexpr int kFields = 2;
  static constexpr std::array kPhases{grid::Phase{.writes = grid::fields(next),
                                                  .reads = grid::fields(now),
                                                  .neighbours = grid::fields(now),
                                                  .reach = {.low = {2, 1, 0}, .high = {1, 2, 0}}}};
  static constexpr std::array kSwaps{grid::Swap{now, next}};
  static constexpr std::array kSwept{0};
  static constexpr int kWatched = now;

  T share;

  template <int PhaseNumber, class Cell>
  HEADRACE_HD void update(Cell cell) const {
    const T about =
        cell.get(now, -2, 0, 0) - cell.get(now, 1, -1, 0) + cell.get(now, -1, 2, 0) - cell.get(now, 1, 2, 0);
    const auto place = static_cast<T>(cell.x() + 2 * cell.y() + 3 * cell.z() + cell.extent(0));
    const T when = static_cast<T>(cell.step() % 7);
    cell.set(next, cell.get(now) * share + about * share + place * T(0.001) + when);
  }
};

/// Three fields in place, two of which drive each other and reach to opposite sides, in passes; between passes of one
/// step a restricted phase adds to one of them.
template <class T>
struct Coupled {
  static constexpr const char* kName = "coupled";
  using Value = T;
  enum Fields : int { u, v, stiffness, untouched };
  static constexpr int kFields = 4;
  static constexpr std::array kPhases{
      grid::Phase{.writes = grid::fields(v),
                  .reads = grid::fields(v, stiffness),
                  .neighbours = grid::fields(u),
                  .reach = {.low = {0, 1, 0}, .high = {2, 1, 0}}},
      grid::Phase{.writes = grid::fields(u),
                  .reads = grid::fields(u, stiffness),
                  .neighbours = grid::fields(v),
                  .reach = {.low = {1, 2, 0}, .high = {0, 0, 0}}},
      grid::Phase{.writes = grid::fields(u), .reads = grid::fields(u), .neighbours = {}, .reach = {}},
  };
  static constexpr std::array kSwept{0, 1};

  T share;

  template <int PhaseNumber, class Cell>
  HEADRACE_HD void update(Cell cell) const {
    if constexpr (PhaseNumber == 0) {
      const T slope = cell.get(u, 2, 0, 0) - cell.get(u, 0, 1, 0) + cell.get(u, 1, -1, 0);
      cell.set(v, cell.get(v) * T(0.5) + cell.get(stiffness) * slope);
    } else if constexpr (PhaseNumber == 1) {
      const T slope = cell.get(v, -1, -1, 0) - cell.get(v, 0, -2, 0);
      cell.set(u, (cell.get(u) - cell.get(stiffness) * slope) * share);
    } else {
      cell.set(u, cell.get(u) + static_cast<T>(cell.step() % 5) - T(2));
    }
  }
};

/// Three fields that rotate: they return to their places after three steps.
struct Rotating {
  static constexpr const char* kName = "rotating";
  using Value = float;
  enum Fields : int { oldest, older, now };
  static constexpr int kFields = 3;
  static constexpr std::array kPhases{grid::Phase{.writes = grid::fields(oldest),
                                                  .reads = grid::fields(oldest, older, now),
                                                  .neighbours = grid::fields(now),
                                                  .reach = grid::layers(1, 2)}};
  static constexpr std::array kSwaps{grid::Swap{oldest, older}, grid::Swap{older, now}};
  static constexpr std::array kSwept{0};

  template <int PhaseNumber, class Cell>
  HEADRACE_HD void update(Cell cell) const {
    const float about = cell.get(now, -1, 0, 0) - cell.get(now, 1, 0, 0) + cell.get(now, 0, 1, 0);
    cell.set(oldest, 0.5F * cell.get(oldest) - 0.25F * cell.get(older) + 0.3F * cell.get(now) + 0.2F * about);
  }
};

/// The change of a step grows by a constant factor, and by another one in some steps.
template <class T>
struct Growing {
  static constexpr const char* kName = "growing";
  using Value = T;
  enum Fields : int { now, next };
  static constexpr int kFields = 2;
  static constexpr std::array kPhases{grid::Phase{.writes = grid::fields(next),
                                                  .reads = grid::fields(now),
                                                  .neighbours = grid::fields(now),
                                                  .reach = {.low = {1, 1, 0}, .high = {0, 0, 0}}}};
  static constexpr std::array kSwaps{grid::Swap{now, next}};
  static constexpr std::array kSwept{0};
  static constexpr int kWatched = now;

  T factor;
  T other;
  std::uint64_t from;
  std::uint64_t past;

  template <int PhaseNumber, class Cell>
  HEADRACE_HD void update(Cell cell) const {
    const T by = cell.step() >= from && cell.step() < past ? other : factor;
    const T beside = cell.get(now, -1, 0, 0) - cell.get(now, 0, -1, 0);
    cell.set(next, by * cell.get(now) + (by - T(1)) * T(0.125) * beside);
  }
};

template <class T>
[[nodiscard]] grid::StencilProgram skewed(T share);
template <class T>
[[nodiscard]] grid::StencilProgram leaning(T share);
template <class T>
[[nodiscard]] grid::StencilProgram coupled(T share);
[[nodiscard]] grid::StencilProgram rotating();
template <class T>
[[nodiscard]] grid::StencilProgram growing(const Growing<T>& stencil);
/// One per part.
template <class T>
[[nodiscard]] grid::StencilProgram driven(const std::vector<Driven<T>>& parts);

}  // namespace headrace::testing
