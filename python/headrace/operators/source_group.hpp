// What C++ source of an operator sees besides its types; see headrace.operators.from_source(). The same source is
// compiled by a host compiler for CPU devices and by NVRTC, which has no headers of the standard library, for GPUs.

#ifdef __CUDACC_RTC__
using int8_t = signed char;
using int16_t = short;
using int32_t = int;
using int64_t = long long;
using uint8_t = unsigned char;
using uint16_t = unsigned short;
using uint32_t = unsigned int;
using uint64_t = unsigned long long;
#define INFINITY __int_as_float(0x7f800000)
#define NAN __int_as_float(0x7fffffff)
namespace std {
using ::abs, ::fabs, ::fma, ::fmax, ::fmin, ::fmod, ::sqrt, ::cbrt, ::hypot, ::pow, ::exp, ::exp2, ::expm1, ::log;
using ::acos, ::asin, ::atan, ::atan2, ::cos, ::cosh, ::sin, ::sinh, ::tan, ::tanh, ::erf, ::log10, ::log1p, ::log2;
using ::ceil, ::floor, ::isfinite, ::isinf, ::isnan, ::llround, ::lround, ::rint, ::round, ::signbit, ::trunc;
using ::int16_t, ::int32_t, ::int64_t, ::int8_t, ::uint16_t, ::uint32_t, ::uint64_t, ::uint8_t, ::size_t;
using ::memcpy, ::memset;
template <class T>
constexpr const T& min(const T& a, const T& b) {
  return b < a ? b : a;
}
template <class T>
constexpr const T& max(const T& a, const T& b) {
  return a < b ? b : a;
}
}  // namespace std
#else
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#endif

namespace headrace {

/// An array that was given when the operator was made, in the order of C. It cannot be written.
template <class T, int Dimensions>
class Array {
 public:
  Array(const T* data, const uint64_t* shape) : data_(data) {
    for (int axis = 0; axis < Dimensions; ++axis) shape_[axis] = shape[axis];
  }

  /// An element, by an index for each dimension, which are not checked.
  template <class... Index>
  const T& operator()(Index... index) const {
    static_assert(sizeof...(Index) == Dimensions, "an array takes an index for each of its dimensions");
    uint64_t at = 0;
    int axis = 0;
    ((at = at * shape_[axis++] + static_cast<uint64_t>(index)), ...);
    return data_[at];
  }
  const T& operator[](uint64_t index) const {
    static_assert(Dimensions == 1, "an array of several dimensions takes its indices in parentheses: rows(i, k)");
    return data_[index];
  }

  const T* data() const { return data_; }
  uint64_t shape(int axis) const { return shape_[axis]; }
  /// The number of elements.
  uint64_t size() const {
    uint64_t all = 1;
    for (const uint64_t length : shape_) all *= length;
    return all;
  }

 private:
  const T* data_;
  uint64_t shape_[Dimensions];
};

/// The threads that answer one query: `block_count()` blocks of `size()`. A CPU device has one block of one thread.
/// Every thread of a block must reach each sync(), sum(), any() and broadcast(). sum() and broadcast() take numbers.
class Group {
 public:
  Group(uint32_t block, uint32_t block_count) : block_(block), block_count_(block_count) {}

  uint32_t block() const { return block_; }
  uint32_t block_count() const { return block_count_; }
  uint32_t thread() const { return block() * size() + rank(); }
  uint32_t thread_count() const { return block_count() * size(); }

#ifdef __CUDACC_RTC__
  /// The types in which numbers are added up: warps exchange these.
  template <class T>
  struct Summed {
    using Type = int64_t;  // unsigned numbers overflow as signed ones do
  };

  /// How many elements of an array a thread should take side by side: those that a CPU handles with one instruction.
  static constexpr uint32_t kLanes = 1;
  uint32_t rank() const { return threadIdx.x; }
  uint32_t size() const { return blockDim.x; }
  void sync() const { __syncthreads(); }
  bool any(bool value) const { return __syncthreads_or(value ? 1 : 0) != 0; }

  /// The sum over the threads of the block.
  template <class T>
  T sum(T value) const {
    using Sum = typename Summed<T>::Type;
    __shared__ Sum sums[32];
    const uint32_t lane = rank() % 32;
    const uint32_t warp = rank() / 32;
    const uint32_t members = size() - warp * 32 < 32 ? size() - warp * 32 : 32;
    Sum total = static_cast<Sum>(value);
    for (uint32_t apart = 16; apart > 0; apart /= 2) {
      const Sum above = __shfl_down_sync(0xFFFFFFFFU >> (32 - members), total, apart);
      if (lane + apart < members) total += above;
    }
    if (lane == 0) sums[warp] = total;
    __syncthreads();
    total = sums[0];
    for (uint32_t other = 1; other < (size() + 31) / 32; ++other) total += sums[other];
    __syncthreads();  // the next call writes there again
    return static_cast<T>(total);
  }

  /// The value that the thread of rank 0 passed.
  template <class T>
  T broadcast(T value) const {
    __shared__ T kept;
    if (rank() == 0) kept = value;
    __syncthreads();
    const T got = kept;
    __syncthreads();  // the next call writes there again
    return got;
  }

  /// One T for the block, contents undefined at first; the same at every call with that T.
  template <class T>
  T& shared() const {
    __shared__ T storage;
    return storage;
  }
#else
  static constexpr uint32_t kLanes = 32;
  static constexpr uint32_t rank() { return 0; }
  static constexpr uint32_t size() { return 1; }
  static void sync() {}
  static bool any(bool value) { return value; }
  template <class T>
  static T sum(T value) {
    return value;
  }
  template <class T>
  static T broadcast(T value) {
    return value;
  }
  template <class T>
  static T& shared() {
    static thread_local T storage;
    return storage;
  }
#endif

 private:
  uint32_t block_;
  uint32_t block_count_;
};

#ifdef __CUDACC_RTC__
template <>
struct Group::Summed<float> {
  using Type = float;
};
template <>
struct Group::Summed<double> {
  using Type = double;
};
#endif

}  // namespace headrace

using headrace::Array;
using headrace::Group;
