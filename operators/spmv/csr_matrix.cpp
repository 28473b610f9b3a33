#include "headrace/operators/csr_matrix.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "base/names.hpp"
#include "headrace/base/detail/process.hpp"
#include "headrace/base/error.hpp"
#include "operators/spmv/csr_check.hpp"
#include "operators/spmv/layout.hpp"
#include "operators/spmv/store.hpp"

namespace headrace::operators {

namespace {

constexpr auto kReads = names_of<VectorReads>(
    "a way to read x",
    {{VectorReads::automatic, "automatic"}, {VectorReads::in_place, "in-place"}, {VectorReads::copied, "copied"}});

/// Returns the devices if a matrix can be distributed over them.
[[nodiscard]] std::vector<Device> checked(std::vector<Device> devices) {
  if (devices.empty()) throw UsageError("a matrix needs at least one device");
  for (auto device = devices.begin(); device != devices.end(); ++device) {
    if (device->kind() != devices.front().kind()) {
      throw UsageError(
          fmt::format("a matrix needs devices of one kind, not {} and {}", devices.front().name(), device->name()));
    }
    if (std::find(devices.begin(), device, *device) != device) {
      throw UsageError(fmt::format("device {} is named twice", device->name()));
    }
  }
  return devices;
}

/// The number of rows of a matrix that has been checked.
template <class Value, class Column>
[[nodiscard]] std::uint64_t checked_rows(const HostCsr<Value, Column>& matrix) {
  require_csr(matrix);
  return matrix.row_count;
}

/// Whether two ranges overlap. std::less orders pointers to different objects, which < does not.
[[nodiscard]] bool overlap(const void* a, std::size_t a_bytes, const void* b, std::size_t b_bytes) {
  const auto* first = static_cast<const std::byte*>(a);
  const auto* second = static_cast<const std::byte*>(b);
  const std::less<> less;
  return less(first, second + b_bytes) && less(second, first + a_bytes);
}

}  // namespace

VectorReads parse_vector_reads(std::string_view text) { return kReads.parse(text); }

/// The member order matters: the crew ends before the memory that it uses.
template <class Value>
class CsrMatrix<Value>::State {
 public:
  template <class Column>
  State(std::vector<Device> its_devices, const HostCsr<Value, Column>& matrix, VectorReads reads)
      : devices(checked(std::move(its_devices))),
        row_count(checked_rows(matrix)),
        column_count(matrix.column_count),
        entry_count(matrix.values.size()),
        row_cut(cut_rows(matrix.row_starts, devices.size())),
        column_cut(scale_cut(row_cut, column_count)),
        stored(store_matrix(devices, matrix, row_cut, column_cut, reads)),
        crew(stored.views) {}

  [[nodiscard]] Span vector(const std::vector<std::uint64_t>& cut) const {
    const std::size_t bytes = std::max<std::size_t>(1, cut.back()) * sizeof(Value);
    return shared_span(devices, bytes, vector_pages(cut, sizeof(Value), devices));
  }

  const Birth birth;
  const std::vector<Device> devices;
  const std::uint64_t row_count;
  const std::uint64_t column_count;
  const std::uint64_t entry_count;
  const std::vector<std::uint64_t> row_cut;
  const std::vector<std::uint64_t> column_cut;
  const StoredMatrix<Value> stored;
  Crew<Value> crew;
};

template <class Value>
template <class Column>
CsrMatrix<Value>::CsrMatrix(std::vector<Device> devices, const HostCsr<Value, Column>& matrix, VectorReads reads)
    : state_(std::make_unique<State>(std::move(devices), matrix, reads)) {}

template <class Value>
CsrMatrix<Value>::CsrMatrix(CsrMatrix&&) noexcept = default;
template <class Value>
CsrMatrix<Value>& CsrMatrix<Value>::operator=(CsrMatrix&& other) noexcept {
  let_go_if_inherited(state_);
  state_ = std::move(other.state_);
  return *this;
}
template <class Value>
CsrMatrix<Value>::~CsrMatrix() {
  let_go_if_inherited(state_);
}

template <class Value>
std::uint64_t CsrMatrix<Value>::row_count() const noexcept {
  return state_->row_count;
}

template <class Value>
std::uint64_t CsrMatrix<Value>::column_count() const noexcept {
  return state_->column_count;
}

template <class Value>
std::uint64_t CsrMatrix<Value>::entry_count() const noexcept {
  return state_->entry_count;
}

template <class Value>
const std::vector<CsrPartUse>& CsrMatrix<Value>::parts() const noexcept {
  return state_->stored.uses;
}

template <class Value>
Span CsrMatrix<Value>::input_vector() const {
  return state_->vector(state_->column_cut);
}

template <class Value>
Span CsrMatrix<Value>::output_vector() const {
  return state_->vector(state_->row_cut);
}

template <class Value>
Status CsrMatrix<Value>::copy_in(const Span& vector, std::span<const Value> from) {
  if (state_->birth.inherited()) return kInherited;
  if (from.size_bytes() > vector.bytes()) return Errc::invalid_argument;
  return upload(state_->crew.first_stream(), vector, 0, from.data(), from.size_bytes());
}

template <class Value>
Status CsrMatrix<Value>::copy_out(std::span<Value> to, const Span& vector) {
  if (state_->birth.inherited()) return kInherited;
  if (to.size_bytes() > vector.bytes()) return Errc::invalid_argument;
  const Status done = wait();
  if (!done) return done;
  return download(state_->crew.first_stream(), to.data(), vector, 0, to.size_bytes());
}

template <class Value>
Status CsrMatrix<Value>::enqueue(const Value* x, Value* y) {
  if (state_->birth.inherited()) return kInherited;
  if (x == nullptr || y == nullptr ||
      overlap(x, state_->column_count * sizeof(Value), y, state_->row_count * sizeof(Value))) {
    return Errc::invalid_argument;
  }
  return state_->crew.enqueue(x, y);
}

template <class Value>
Status CsrMatrix<Value>::wait() {
  if (state_->birth.inherited()) return kInherited;
  return state_->crew.wait();
}

template <class Value>
Status CsrMatrix<Value>::multiply(const Value* x, Value* y) {
  const Status enqueued = enqueue(x, y);
  const Status done = wait();
  return enqueued ? done : enqueued;
}

template class CsrMatrix<float>;
template class CsrMatrix<double>;
template CsrMatrix<float>::CsrMatrix(std::vector<Device>, const HostCsr<float, std::int32_t>&, VectorReads);
template CsrMatrix<float>::CsrMatrix(std::vector<Device>, const HostCsr<float, std::int64_t>&, VectorReads);
template CsrMatrix<double>::CsrMatrix(std::vector<Device>, const HostCsr<double, std::int32_t>&, VectorReads);
template CsrMatrix<double>::CsrMatrix(std::vector<Device>, const HostCsr<double, std::int64_t>&, VectorReads);

}  // namespace headrace::operators
