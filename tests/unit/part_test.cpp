#include "headrace/device/detail/copy_part.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <utility>

#include "device/copies/linger_kernel.hpp"

namespace headrace::detail {
namespace {

TEST(Part, KeepsItsAddressesAndItsLength) {
  auto* const highest = reinterpret_cast<std::byte*>((std::uintptr_t{1} << 56) - 1);
  auto* const low = reinterpret_cast<std::byte*>(std::uintptr_t{0x7f12'3456'789a});
  for (const std::uint32_t bytes : {0U, 1U, 255U, 256U, kPartBytes, Part::kBytesMax}) {
    for (const auto& [to, from] : {std::pair{highest, low}, std::pair{low, highest}}) {
      const Part part(to, from, bytes);
      EXPECT_EQ(part.to(), to);
      EXPECT_EQ(part.from(), from);
      EXPECT_EQ(part.bytes(), bytes);
    }
  }
  EXPECT_EQ(Part{}.bytes(), 0U);
  EXPECT_EQ(Part{}.to(), nullptr);
}

TEST(Part, PartsTileTheCopyAtAlignedTargets) {
  auto* const to = reinterpret_cast<std::byte*>(std::uintptr_t{0x10003});
  auto* const from = reinterpret_cast<std::byte*>(std::uintptr_t{0x90001});
  constexpr std::uint32_t kLongest = Part::kBytesMax / kPartAlignment * kPartAlignment;
  for (const std::uint32_t most : {kPartAlignment, kPartBytes, kLongest}) {
    for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{most - 3}, std::size_t{most - 2},
                                    std::size_t{10'000}, std::size_t{100'000}}) {
      std::size_t at = 0;
      std::size_t count = 0;
      for_each_part(to, from, bytes, most, [&](const Part& part) {
        EXPECT_EQ(part.to(), to + at);
        EXPECT_EQ(part.from(), from + at);
        EXPECT_GT(part.bytes(), 0U);
        EXPECT_LE(part.bytes(), most);
        if (at > 0) {
          EXPECT_EQ(reinterpret_cast<std::uintptr_t>(part.to()) % kPartAlignment, 0U);
        }
        at += part.bytes();
        ++count;
      });
      EXPECT_EQ(at, bytes);
      EXPECT_EQ(count, bytes == 0 ? 0 : (bytes + 3 + most - 1) / most);  // no more than needed
    }
  }
}

TEST(LingerWord, TellsItsListFromTheOneBeforeAndKeepsAnAddress) {
  constexpr std::uint64_t kHighest = (std::uint64_t{1} << 56) - 1;
  for (const std::uint64_t value : {std::uint64_t{0}, std::uint64_t{4096}, kHighest}) {
    for (std::uint64_t sequence = 1; sequence < 1000; ++sequence) {
      const std::uint64_t word = LingerWord::of(value, sequence);
      EXPECT_EQ(LingerWord::value(word), value);
      EXPECT_TRUE(LingerWord::is_of(word, sequence));
      EXPECT_FALSE(LingerWord::is_of(word, sequence + 1));
      EXPECT_FALSE(LingerWord::is_of(word, sequence + 255));
    }
  }
  EXPECT_FALSE(LingerWord::is_of(0, 1)) << "words that were never written belong to no first list";
}

}  // namespace
}  // namespace headrace::detail
