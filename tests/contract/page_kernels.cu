#include "tests/contract/page_kernels.hpp"

namespace headrace::testing {

namespace {

struct VisitPages {
  static constexpr const char* kName = "test::visit_pages";
  template <class Group>
  HEADRACE_HD static void run(Group group, const std::byte* data, const std::uint32_t* pages, std::uint32_t count,
                              PageCounter counter, std::uint64_t* sum) {
    for (std::uint32_t i = group.thread(); i < count; i += group.thread_count()) {
      const std::byte* address = data + pages[i] * kPageBytes;
      counter.touch(group, address);
      static_cast<void>(
          group.fetch_add_relaxed_on_device(*sum, std::uint64_t{*reinterpret_cast<const std::uint32_t*>(address)}));
    }
  }
};

struct NumberPages {
  static constexpr const char* kName = "test::number_pages";
  template <class Group>
  HEADRACE_HD static void run(Group group, std::byte* data, std::uint32_t page_count) {
    for (std::uint32_t i = group.thread(); i < page_count; i += group.thread_count()) {
      *reinterpret_cast<std::uint32_t*>(data + i * kPageBytes) = i + 1;
    }
  }
};

}  // namespace

TypedKernel<const std::byte*, const std::uint32_t*, std::uint32_t, PageCounter, std::uint64_t*> visit_pages_kernel() {
  return make_kernel<VisitPages, const std::byte*, const std::uint32_t*, std::uint32_t, PageCounter, std::uint64_t*>();
}

TypedKernel<std::byte*, std::uint32_t> number_pages_kernel() {
  return make_kernel<NumberPages, std::byte*, std::uint32_t>();
}

}  // namespace headrace::testing
