#include "measure/access_launch.hpp"

namespace headrace::measure {

namespace {

template <class Pattern, class... Draws>
TypedKernel<AccessData, Draws...> kernel_of(AccessOperation operation) {
  switch (operation) {
    case AccessOperation::write: return make_kernel<AccessKernel<Pattern, Writing>, AccessData, Draws...>();
    case AccessOperation::read_modify_write:
      return make_kernel<AccessKernel<Pattern, Modifying>, AccessData, Draws...>();
    case AccessOperation::read: break;
  }
  return make_kernel<AccessKernel<Pattern, Reading>, AccessData, Draws...>();
}

[[nodiscard]] HEADRACE_HD constexpr std::uint64_t row_units() noexcept { return ZipfRows::kItems; }

struct Fill {
  static constexpr const char* kName = "measure::fill";
  template <class Group>
  HEADRACE_HD static void run(const Group& group, const AccessData& to) noexcept {
    Unit* const units = reinterpret_cast<Unit*>(to.data);
    for (std::uint64_t i = group.thread(); i < to.page_count * kPageUnits; i += group.thread_count()) {
      units[i] = filled<Unit>(i);
    }
  }
};

struct ExpectPages {
  static constexpr const char* kName = "measure::expect_pages";
  template <class Group>
  HEADRACE_HD static void run(const Group& group, const AccessData& to, std::uint64_t first_page,
                              std::uint64_t page_count) noexcept {
    std::uint64_t sum = 0;
    for (std::uint64_t i = group.thread(); i < page_count * kPageUnits; i += group.thread_count()) {
      sum += word_sum(filled<Unit>(first_page * kPageUnits + i));
    }
    sum = group.sum(sum);
    if (group.rank() == 0) to.sums[group.block()] = sum;
  }
};

struct ExpectDrawn {
  static constexpr const char* kName = "measure::expect_drawn";
  template <class Group>
  HEADRACE_HD static void run(const Group& group, const AccessData& to, const ZipfRows& draws) noexcept {
    std::uint64_t sum = 0;
    for (std::uint64_t draw = group.thread(); draw < draws.draw_count(); draw += group.thread_count()) {
      const std::uint64_t row = draws.at(draw);
      for (std::uint64_t i = 0; i < row_units(); ++i) sum += word_sum(filled<Unit>(row * row_units() + i));
    }
    sum = group.sum(sum);
    if (group.rank() == 0) to.sums[group.block()] = sum;
  }
};

struct CountDraws {
  static constexpr const char* kName = "measure::count_draws";
  template <class Group>
  HEADRACE_HD static void run(const Group& group, const DrawCounts& counts, const ZipfRows& draws) noexcept {
    for (std::uint64_t draw = group.thread(); draw < draws.draw_count(); draw += group.thread_count()) {
      const std::uint64_t row = draws.at(draw);
      static_cast<void>(group.fetch_add_relaxed_on_device(counts.pages[row / counts.page_rows], std::uint32_t{1}));
      counts.rows[row] = 1;  // all writers store the same value
    }
  }
};

[[nodiscard]] HEADRACE_HD constexpr bool same(const Unit& x, const Unit& y) noexcept {
  return x.a == y.a && x.b == y.b && x.c == y.c && x.d == y.d;
}

struct Check {
  static constexpr const char* kName = "measure::check";
  template <class Group>
  HEADRACE_HD static void run(const Group& group, const AccessData& of, const ExpectedWords& expected) noexcept {
    const Unit* const units = reinterpret_cast<const Unit*>(of.data);
    std::uint64_t wrong = 0;
    for (std::uint64_t i = group.thread(); i < of.page_count * kPageUnits; i += group.thread_count()) {
      Unit should = filled<Unit>(i);
      if (expected.rows == nullptr || expected.rows[i / row_units()] != 0) {
        if (expected.operation == AccessOperation::write) should = written<Unit>(i, expected.run);
        if (expected.operation == AccessOperation::read_modify_write) should = modified(should, expected.run);
      }
      if (!same(units[i], should)) ++wrong;
    }
    wrong = group.sum(wrong);
    if (group.rank() == 0) of.sums[group.block()] = wrong;
  }
};

}  // namespace

TypedKernel<AccessData> sweep_kernel(AccessPattern pattern, AccessOperation operation) {
  if (pattern == AccessPattern::block_stride) return kernel_of<BlockStride>(operation);
  if (pattern == AccessPattern::hot_tenth) return kernel_of<HotTenth>(operation);
  return kernel_of<GridStride>(operation);
}

TypedKernel<AccessData, RandomRegions> random_warp_kernel(AccessOperation operation) {
  return kernel_of<RandomWarp, RandomRegions>(operation);
}
TypedKernel<AccessData, ZipfRows> zipf_kernel(AccessOperation operation) {
  return kernel_of<Zipf, ZipfRows>(operation);
}

TypedKernel<AccessData> fill_access_kernel() { return make_kernel<Fill, AccessData>(); }
TypedKernel<AccessData, std::uint64_t, std::uint64_t> expect_pages_kernel() {
  return make_kernel<ExpectPages, AccessData, std::uint64_t, std::uint64_t>();
}
TypedKernel<AccessData, ZipfRows> expect_drawn_kernel() { return make_kernel<ExpectDrawn, AccessData, ZipfRows>(); }
TypedKernel<DrawCounts, ZipfRows> count_kernel() { return make_kernel<CountDraws, DrawCounts, ZipfRows>(); }
TypedKernel<AccessData, ExpectedWords> check_kernel() { return make_kernel<Check, AccessData, ExpectedWords>(); }

}  // namespace headrace::measure
