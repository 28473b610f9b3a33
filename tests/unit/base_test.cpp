#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <set>
#include <string_view>

#include "base/first_error.hpp"
#include "base/names.hpp"
#include "headrace/base/detail/bytes.hpp"
#include "headrace/base/detail/clock.hpp"
#include "headrace/base/error.hpp"
#include "headrace/base/result.hpp"

namespace headrace {
namespace {

using ::testing::HasSubstr;

TEST(BytesTest, ParsesNumbersWithUnits) {
  EXPECT_EQ(parse_bytes("0"), 0U);
  EXPECT_EQ(parse_bytes("4096"), 4096U);
  EXPECT_EQ(parse_bytes("17 B"), 17U);
  EXPECT_EQ(parse_bytes("64KiB"), 64U * 1024);
  EXPECT_EQ(parse_bytes("64 kib"), 64U * 1024);
  EXPECT_EQ(parse_bytes("1.5 GiB"), 3 * kGiB / 2);
  EXPECT_EQ(parse_bytes("128MB"), 128'000'000U);
  EXPECT_EQ(parse_bytes("2TiB"), 2048 * kGiB);
}

TEST(BytesTest, RefusesWhatIsNoSize) {
  for (const char* text : {"", "x", "KiB", "12 parsecs", "-1", "1e30", "nan", "inf", "1.2.3", "5 KiB extra", " 5"}) {
    try {
      const std::size_t bytes = parse_bytes(text);
      FAIL() << "'" << text << "' gave " << bytes;
    } catch (const UsageError& error) {
      EXPECT_THAT(error.what(), HasSubstr(std::string("'") + text + "' is not a size"));
    }
  }
}

TEST(BytesTest, Formats) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(1023), "1023 B");
  EXPECT_EQ(format_bytes(64 * kKiB), "64 KiB");
  EXPECT_EQ(format_bytes(3 * kGiB / 2), "1.5 GiB");
  EXPECT_EQ(format_bytes(1'256'277'934), "1.17 GiB");
  EXPECT_EQ(format_bytes(1000 * kMiB), "1000 MiB");
  EXPECT_EQ(format_bytes(kGiB - 1), "1024 MiB");
  EXPECT_EQ(format_bytes(5000 * kGiB), "4.88 TiB");
}

TEST(BytesTest, FormattedSizesParseBack) {
  for (const std::size_t bytes : {std::size_t{1}, 2 * kKiB, 7 * kMiB, 31 * kGiB, 5 * kGiB / 2}) {
    EXPECT_EQ(parse_bytes(format_bytes(bytes)), bytes);
  }
}

TEST(BytesTest, Rounds) {
  EXPECT_EQ(align_up(0, 256), 0U);
  EXPECT_EQ(align_up(1, 256), 256U);
  EXPECT_EQ(align_up(256, 256), 256U);
  EXPECT_FALSE(is_power_of_two(0));
  EXPECT_TRUE(is_power_of_two(1));
  EXPECT_TRUE(is_power_of_two(4096));
  EXPECT_FALSE(is_power_of_two(6));
}

enum class Fruit : std::uint8_t { apple, pear, plum };
constexpr auto kFruits = names_of<Fruit>("a fruit", {{Fruit::plum, "plum"}, {Fruit::apple, "crab-apple"}});

TEST(NamesTest, GoBothWays) {
  EXPECT_EQ(kFruits.of(Fruit::plum), "plum");
  EXPECT_EQ(kFruits.parse("crab-apple"), Fruit::apple);
  EXPECT_EQ(kFruits.of(Fruit::pear), "unknown");
}

TEST(NamesTest, RefuseOthersAndSayWhichThereAre) {
  for (const char* text : {"", "pear", "Plum", "plu", "plums", "unknown"}) {
    try {
      static_cast<void>(kFruits.parse(text));
      FAIL() << text;
    } catch (const UsageError& error) {
      EXPECT_EQ(error.what(), std::string("'") + text + "' is not a fruit: plum, crab-apple");
    }
  }
}

TEST(ErrorTest, EveryCodeHasANameOfItsOwn) {
  std::set<std::string_view> names;
  int codes = 0;
  // The code after the last one has no name. A new code without a name, or one after `hung`, fails here.
  for (; to_string(static_cast<Errc>(codes)) != "unknown error"; ++codes) {
    names.insert(to_string(static_cast<Errc>(codes)));
  }
  EXPECT_EQ(codes, static_cast<int>(Errc::hung) + 1);
  EXPECT_EQ(names.size(), static_cast<std::size_t>(codes));
}

TEST(ErrorTest, TheFirstOfSeveralIsKeptWhole) {
  FirstError first;
  EXPECT_EQ(first.get(), std::nullopt);
  EXPECT_TRUE(first.set({Errc::hung, -1}));
  EXPECT_FALSE(first.set({Errc::invalid_argument, 7}));
  EXPECT_EQ(first.get(), (Error{Errc::hung, -1}));
  FirstError least;  // its codes are all zeros
  EXPECT_TRUE(least.set({static_cast<Errc>(0), 0}));
  EXPECT_EQ(least.get(), (Error{static_cast<Errc>(0), 0}));
}

TEST(ErrorTest, ErrnoBecomesTheFittingCode) {
  const auto code_of = [](int error_number) {
    try {
      throw_errno("opening words.hridx", error_number);
    } catch (const SystemError& error) {
      EXPECT_EQ(error.native(), error_number);
      EXPECT_THAT(error.what(), HasSubstr("opening words.hridx: "));
      return error.code();
    }
  };
  EXPECT_EQ(code_of(ENOENT), Errc::not_found);
  EXPECT_EQ(code_of(EACCES), Errc::no_permission);
  EXPECT_EQ(code_of(ENOMEM), Errc::out_of_memory);
  EXPECT_EQ(code_of(EIO), Errc::system);
}

TEST(ErrorTest, ThrowsTheFittingType) {
  EXPECT_THROW(throw_error("x", {Errc::invalid_argument}), UsageError);
  EXPECT_THROW(throw_error("x", {Errc::not_found}), UsageError);
  EXPECT_THROW(throw_error("x", {Errc::corrupt_data}), DataError);
  EXPECT_THROW(throw_error("x", {Errc::system, EIO}), SystemError);
  EXPECT_THROW(throw_error("x", {Errc::out_of_memory, 2}), DeviceError);
  EXPECT_THROW(throw_error("x", {Errc::device_fault, 700}), DeviceError);
  EXPECT_THROW(throw_error("x", {Errc::deadline_exceeded}), Exception);
  try {
    throw_error("launching", {Errc::device_fault, 700});
  } catch (const DeviceError& error) {
    EXPECT_STREQ(error.what(), "launching: device fault (native code 700)");
    EXPECT_EQ(error.native(), 700);
  }
}

TEST(ResultTest, HoldsAValueOrAReason) {
  const Result<int> value = 5;
  ASSERT_TRUE(value.ok());
  EXPECT_EQ(*value, 5);
  const Result<int> full = Errc::full;
  EXPECT_FALSE(full);
  EXPECT_EQ(full.error(), (Error{Errc::full, 0}));
  EXPECT_EQ(Result<int>(7).or_throw("counting"), 7);
  EXPECT_THROW(static_cast<void>(Result<int>(Errc::full).or_throw("counting")), Exception);
}

TEST(ResultTest, StatusIsSuccessUnlessTold) {
  EXPECT_TRUE(Status{}.ok());
  EXPECT_NO_THROW(Status{}.or_throw("waiting"));
  const Status fault = Error{Errc::device_fault, 3};
  EXPECT_FALSE(fault);
  EXPECT_EQ(fault.error().native, 3);
  EXPECT_THROW(fault.or_throw("waiting"), DeviceError);
}

TEST(ClockTest, ManualClockMovesWhenTold) {
  ManualClock clock;
  EXPECT_EQ(clock.now(), Time{0});
  clock.advance(std::chrono::microseconds(3));
  EXPECT_EQ(clock.now(), Time{3000});
}

TEST(ClockTest, SteadyClockDoesNotGoBack) {
  const Time first = SteadyClock::now();
  EXPECT_LE(first, SteadyClock::now());
}

}  // namespace
}  // namespace headrace
