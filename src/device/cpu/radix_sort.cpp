#include "device/cpu/radix_sort.hpp"

#include <algorithm>
#include <array>
#include <new>
#include <utility>
#include <vector>

#include "device/copies/helpers.hpp"

namespace headrace::detail {

namespace {

constexpr std::uint32_t kDigitBits = 8;
constexpr std::size_t kDigits = std::size_t{1} << kDigitBits;
/// The least number of pairs for which another thread pays off.
constexpr std::size_t kPartLeast = 1 << 14;

/// One pass per digit, from the lowest up: every thread counts the digits of its part, and then moves its pairs behind
/// those of lower digits and behind those of the same digit in earlier parts. (Knuth, TAOCP 3, 5.2.5.)
class RadixSort {
 public:
  RadixSort(const PairLists& pairs, std::uint32_t threads)
      : keys_(pairs.keys),
        other_keys_(pairs.other_keys),
        values_(pairs.values),
        other_values_(pairs.other_values),
        count_(pairs.count),
        key_bits_(pairs.key_bits) {
    const auto worth = static_cast<std::uint32_t>(std::clamp<std::size_t>(count_ / kPartLeast, 1, threads));
    parts_.resize(helpers_.start(worth - 1, std::nullopt) + 1);
  }

  [[nodiscard]] bool run() noexcept {
    bool swapped = false;
    for (std::uint32_t bit = 0; bit < key_bits_; bit += kDigitBits) {
      shift_ = bit;
      mask_ = (std::uint64_t{1} << std::min(kDigitBits, key_bits_ - bit)) - 1;
      each_part([](void* self, std::uint32_t part) { static_cast<RadixSort*>(self)->count_digits(part); });
      if (!place_digits()) continue;
      each_part([](void* self, std::uint32_t part) { static_cast<RadixSort*>(self)->move_pairs(part); });
      std::swap(keys_, other_keys_);
      std::swap(values_, other_values_);
      swapped = !swapped;
    }
    return swapped;
  }

 private:
  using Counts = std::array<std::size_t, kDigits>;

  void each_part(Helpers::Work work) noexcept {
    const auto helping = static_cast<std::uint32_t>(parts_.size()) - 1;  // helpers take the first parts
    if (helping > 0) helpers_.begin(helping, work, this);
    work(this, helping);
    if (helping > 0) helpers_.end();
  }
  [[nodiscard]] std::size_t first_of(std::size_t part) const noexcept { return count_ / parts_.size() * part; }
  [[nodiscard]] std::size_t end_of(std::size_t part) const noexcept {
    return part + 1 == parts_.size() ? count_ : first_of(part + 1);
  }
  [[nodiscard]] std::size_t digit_of(std::uint64_t key) const noexcept { return key >> shift_ & mask_; }

  void count_digits(std::uint32_t part) noexcept {
    Counts counts{};
    for (std::size_t i = first_of(part); i < end_of(part); ++i) ++counts[digit_of(keys_[i])];
    parts_[part] = counts;
  }
  /// Turns counts into positions. False if all pairs have the same digit.
  [[nodiscard]] bool place_digits() noexcept {
    std::size_t place = 0;
    for (std::size_t digit = 0; digit < kDigits; ++digit) {
      const std::size_t before = place;
      for (Counts& counts : parts_) place += std::exchange(counts[digit], place);
      if (place - before == count_) return false;
    }
    return true;
  }
  void move_pairs(std::uint32_t part) noexcept {
    Counts places = parts_[part];
    for (std::size_t i = first_of(part); i < end_of(part); ++i) {
      const std::size_t to = places[digit_of(keys_[i])]++;
      other_keys_[to] = keys_[i];
      other_values_[to] = values_[i];
    }
  }

  std::uint64_t* keys_;
  std::uint64_t* other_keys_;
  std::uint32_t* values_;
  std::uint32_t* other_values_;
  std::size_t count_;
  std::uint32_t key_bits_;
  std::uint32_t shift_ = 0;
  std::uint64_t mask_ = 0;
  std::vector<Counts> parts_;
  Helpers helpers_;
};

}  // namespace

Result<bool> radix_sort(const PairLists& pairs, std::uint32_t threads) noexcept {
  try {
    return RadixSort(pairs, threads).run();
  } catch (const std::bad_alloc&) {
    return Errc::out_of_memory;
  }
}

}  // namespace headrace::detail
