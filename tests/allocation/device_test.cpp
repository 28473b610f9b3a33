#include <unistd.h>

#include <algorithm>
#include <vector>

#include "failing_new.hpp"
#include "headrace/base/detail/bytes.hpp"
#include "headrace/device/copy_batch.hpp"
#include "headrace/device/detail/uploads.hpp"
#include "headrace/device/span.hpp"
#include "headrace/operators/csr_matrix.hpp"

namespace headrace::testing {
namespace {

Device first() { return Device::parse("cpu:42"); }
Device second() { return Device::parse("cpu:43"); }

TEST(AllocationFailuresOfSpans, AreExceptions) {
  fail_each_allocation("a span", [] {
    const Stream stream(first());
    Span span(first(), 6 * kPageBytes, Placement::interleaved({{Place::on(first()), 1}, {Place::host(), 1}}),
              {.accessed_by = {second()}});
    span.as<int>()[0] = 7;
    span.move(stream, Placement::all(Place::on(second())));
    span.allow(second(), Right::read, PageRange{1, 2});
    span.used_by(stream).or_throw("marking");
    span.move(stream, PageRange{0, 3}, Place::host());
    EXPECT_EQ(span.as<int>()[0], 7);
    span.trim();
  });
}

TEST(AllocationFailuresOfSpans, OfASharedOneAreExceptions) {
  fail_each_allocation("a shared span", [] {
    const Span span(first(), 2 * kPageBytes, Placement::all(Place::on(first())), {.shareable = true});
    SharedPages shared = span.share();
    struct Closed {
      SharedPages& pages;
      ~Closed() {
        for (const int descriptor : pages.descriptors) ::close(descriptor);
      }
    } const closed{shared};
    const Span other(shared);
    EXPECT_EQ(other.page_count(), 2U);
  });
}

TEST(AllocationFailuresOfCopies, AreExceptions) {
  fail_each_allocation("a batch of copies", [] {
    constexpr std::size_t kCopies = 5000;
    const std::vector<std::uint32_t> from(kCopies, 9);
    const Buffer to(first(), MemoryKind::device, kCopies * 2 * sizeof(std::uint32_t));
    const Stream stream(first());
    CopyBatch batch(stream);
    for (std::size_t i = 0; i < kCopies; ++i) {
      const auto source = i % 3 == 0 ? CopySource::reusable : i % 3 == 1 ? CopySource::pageable : CopySource::stable;
      batch.add(to.data() + 2 * i * sizeof(std::uint32_t), &from[i], sizeof(std::uint32_t), source).or_throw("adding");
    }
    batch.wait().or_throw("copying");
    EXPECT_EQ(to.as<std::uint32_t>()[2 * (kCopies - 1)], 9U);
  });
}

TEST(AllocationFailuresOfCopies, OfUploadsFreeNothingThatIsStillCopied) {
  const std::vector<std::byte> content(4 * kMiB, std::byte{3});
  fail_each_allocation("uploads", [&] {
    const std::vector<std::byte> own = content;
    Uploads uploads(first(), "uploading");
    for (int i = 0; i < 4; ++i) uploads.add(own);
    const auto buffers = uploads.finish();
    EXPECT_EQ(buffers.back().data()[content.size() - 1], std::byte{3});
  });
}

TEST(AllocationFailuresOfMatrices, AreExceptions) {
  const std::vector<std::int64_t> starts{0, 2, 3, 5};
  const std::vector<std::int32_t> columns{0, 2, 1, 0, 2};
  const std::vector<double> values{1, 2, 3, 4, 5};
  const operators::HostCsr<double, std::int32_t> host{3, 3, starts, columns, values};
  fail_each_allocation("a sparse matrix", [&] {
    operators::CsrMatrix<double> matrix({first(), second()}, host);
    const Span x = matrix.input_vector();
    const Span y = matrix.output_vector();
    const std::vector<double> in{1, 1, 1};
    std::vector<double> out(3);
    matrix.copy_in(x, in).or_throw("copying in");
    matrix.multiply(x.as<double>(), y.as<double>()).or_throw("multiplying");
    matrix.copy_out(out, y).or_throw("copying out");
    EXPECT_EQ(out, (std::vector<double>{3, 3, 9}));
  });
}

}  // namespace
}  // namespace headrace::testing
