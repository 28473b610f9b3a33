#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "headrace/base/error.hpp"
#include "headrace/config.hpp"
#include "headrace/operators/detail/library_abi.hpp"
#include "headrace/operators/load_library.hpp"
#include "headrace/serve/engine.hpp"
#include "tests/contract/every_plan.hpp"
#include "tests/temporary_folder.hpp"

/// Operators in shared objects: every schedule runs their kernels, and the error for a file not made for this Headrace
/// names it.
namespace headrace::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::StartsWith;

const fs::path kFolder = HEADRACE_TEST_LIBRARIES;

fs::path built(const std::string& name) { return kFolder / ("libheadrace_test_" + name + ".so"); }

/// What libheadrace_test_altered.so returns while this exists.
class Altered {
 public:
  explicit Altered(const char* how) { ::setenv("ALTERED_LIBRARY", how, 1); }
  Altered(const Altered&) = delete;
  Altered& operator=(const Altered&) = delete;
  ~Altered() { ::unsetenv("ALTERED_LIBRARY"); }
};

struct Refused {
  std::string says;
  Errc code = Errc::system;
};

template <class Thrown>
Refused refused(const fs::path& path) {
  try {
    static_cast<void>(operators::load_library(path));
  } catch (const Thrown& error) {
    return {error.what(), error.code()};
  }
  return {"it was loaded", Errc::system};
}

/// Loads a copy that no other test has loaded. The error begins with the file's name.
template <class Thrown>
Refused refused_altered(const char* how) {
  const Altered altered(how);
  const TemporaryFolder folder;
  const fs::path path = fs::canonical(folder.path()) / "altered.so";
  fs::copy_file(built("altered"), path);
  Refused error = refused<Thrown>(path);
  if (error.says.starts_with(path.string())) error.says.erase(0, path.string().size() - std::strlen("altered.so"));
  return error;
}

std::vector<char> bytes_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

fs::path written(const fs::path& path, const std::vector<char>& bytes) {
  std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  return path;
}

TEST(LibraryOperator, AnswersUnderEverySchedule) {
  const serve::Operator op = operators::load_library(built("sums"));
  EXPECT_EQ(op.name, "sums");
  EXPECT_EQ(op.query_bytes, 28U);
  EXPECT_EQ(op.answer_bytes, 32U);
  EXPECT_EQ(op.shape.threads, 64U);
  EXPECT_EQ(op.query_type, "([('weight', '|u1', ()), ('', '|V3'), ('words', '<u4', (2,3,)), ], ())");
  EXPECT_EQ(op.answer_type, "([('columns', '<u8', (3,)), ('even', '|b1', ()), ('', '|V7'), ], ())");

  // Query 10 has weight 3 and the words 10, 11, 12 and 30, 5, 71.
  const std::vector<std::byte> answer = answer_of(op, query_of(op, 10));
  std::uint64_t columns[3];
  std::memcpy(columns, answer.data(), sizeof columns);
  EXPECT_THAT(columns, ::testing::ElementsAre(1120U, 1048U, 1249U));
  EXPECT_EQ(answer[24], std::byte{0}) << "139 is odd";

  for (const Device device : Device::list()) {
    if (!op.kernel.runs_on(device.kind())) continue;
    ASSERT_NO_FATAL_FAILURE(exchange_under_every_plan(device, op, 300));
  }
}

TEST(LibraryOperator, IsLoadedOnceWhateverThePathIsSpelledLike) {
  const serve::Operator one = operators::load_library(built("sums"));
  const serve::Operator other = operators::load_library(kFolder / "." / "libheadrace_test_sums.so");
  EXPECT_EQ(one.kernel.cpu_entry(), other.kernel.cpu_entry());
}

TEST(LibraryOperator, OfNumbersHasTheirTypes) {
  const serve::Operator op = operators::load_library(built("altered"));
  EXPECT_EQ(op.query_type, "('<i8', ())");
  EXPECT_EQ(op.answer_type, "('<i8', (2,))");
  EXPECT_EQ(op.shape.threads, 32U);
}

TEST(LibraryOperator, OfAnotherAbiOrVersionIsNamedWithBoth) {
  const Refused abi = refused_altered<UsageError>("abi");
  EXPECT_EQ(abi.code, Errc::not_supported);
  EXPECT_EQ(abi.says, std::string("altered.so has an operator of ABI 77, built with Headrace ") + kVersion +
                          " (abc1234) by a compiler, but this Headrace (" + kVersion + ") has ABI " +
                          std::to_string(operators::kOperatorAbi) +
                          ": build it again with the headers of the Headrace that loads it");
  const Refused version = refused_altered<UsageError>("version");
  EXPECT_EQ(version.code, Errc::not_supported);
  EXPECT_THAT(version.says, HasSubstr(std::string("built with Headrace 0.0.1 (abc1234) by a compiler, but this is "
                                                  "Headrace ") +
                                      kVersion + ": build it again"));
  EXPECT_THAT(refused_altered<UsageError>("no version").says, HasSubstr("this is Headrace"));
  EXPECT_THAT(refused_altered<UsageError>("bytes").says, HasSubstr("describes its operator in "));
  EXPECT_THAT(refused_altered<UsageError>("layout").says,
              HasSubstr("its DispatchView has " + std::to_string(sizeof(serve::DispatchView) + 16) + " bytes"));
  EXPECT_THAT(refused_altered<UsageError>("layouts").says, HasSubstr("it describes 0 layouts, not 10"));
}

TEST(LibraryOperator, ThatCannotBeIsRefused) {
  for (const auto& [how, says] :
       {std::pair{"null", "describes no operator"}, std::pair{"name", "its operator has no name"},
        std::pair{"query", "its query or answer has no bytes"},
        std::pair{"state", "its State must have 1 to 256 bytes"},
        std::pair{"threads", "1 blocks of 1025 threads are not possible"},
        std::pair{"kernel", "one of its kernels is missing"},
        std::pair{"field", "field '' of its answer is not a number or an array of numbers"},
        std::pair{"huge field", "field '' of its answer"}, std::pair{"dimensions", "field '' of its answer"},
        std::pair{"field name", "field 'a'' of its answer"}}) {
    const Refused error = refused_altered<DataError>(how);
    EXPECT_THAT(error.says, HasSubstr(says)) << how;
    EXPECT_THAT(error.says, StartsWith("altered.so")) << how;
  }
}

TEST(LibraryOperator, WhatItsFunctionsThrowIsTheEnginesError) {
  const serve::Operator op = operators::load_library(built("altered"));
  const auto says = [&](const char* how, const auto& call) {
    const Altered altered(how);
    try {
      call();
    } catch (const UsageError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const auto start = [&] { const serve::Engine engine(Device::parse("cpu:0"), op, serve::Plan{}); };
  EXPECT_EQ(says("state throws", start), "operator same: its state() failed: there is no table");
  EXPECT_EQ(says("state throws a number", start),
            "operator same: its state() failed: it threw something other than a std::exception");
  const auto sample = [&] { static_cast<void>(query_of(op, 1)); };
  EXPECT_THAT(says("sample throws", sample), MatchesRegex("operator same: its sample\\(\\) failed: x+"));
  // Nothing of this remains.
  serve::Engine engine(Device::parse("cpu:0"), op, serve::Plan{});
  serve::Client client = engine.connect();
  exchange(client, op, 0, 20);
}

TEST(LibraryOperator, IsNotWhatIsNoSharedObject) {
  const TemporaryFolder folder;
  const fs::path& at = folder.path();
  EXPECT_EQ(refused<SystemError>(at / "none.so").code, Errc::not_found);
  EXPECT_THAT(refused<SystemError>(at / "none.so").says, HasSubstr("none.so"));
  EXPECT_THAT(refused<DataError>(at).says, HasSubstr("is not a shared object: it is not a regular file"));
  EXPECT_THAT(refused<DataError>(written(at / "empty.so", {})).says, HasSubstr("is not a shared object"));
  EXPECT_THAT(refused<DataError>(written(at / "text.so", std::vector<char>(500, 'x'))).says,
              HasSubstr("text.so is not a shared object: it does not begin with an ELF header"));
  std::vector<char> elsewhere = bytes_of(built("sums"));
  elsewhere[18] = 8;  // e_machine: MIPS
  EXPECT_THAT(refused<DataError>(written(at / "mips.so", elsewhere)).says,
              HasSubstr("mips.so was built for another kind of machine"));
  elsewhere = bytes_of(built("sums"));
  elsewhere[16] = 1;  // e_type: an object file
  EXPECT_THAT(refused<DataError>(written(at / "object.so", elsewhere)).says, HasSubstr("but not a shared object"));
  const Refused none = refused<UsageError>(built("no_operator"));
  EXPECT_THAT(none.says, HasSubstr("exports no operator; write HEADRACE_OPERATOR(TheStruct)"));
  EXPECT_EQ(none.code, Errc::not_found);
}

TEST(LibraryOperator, ThatIsNotWholeIsRefused) {
  const TemporaryFolder folder;
  const std::vector<char> whole = bytes_of(built("sums"));
  ASSERT_GT(whole.size(), 4096U);
  for (std::size_t bytes = 0; bytes < whole.size(); bytes += 1 + whole.size() / 61) {
    const std::vector<char> part(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(bytes));
    const Refused error = refused<DataError>(written(folder.path() / "part.so", part));
    EXPECT_EQ(error.code, Errc::corrupt_data) << bytes << " of " << whole.size() << ": " << error.says;
  }
}

TEST(LibraryOperator, ThatChangedIsNotTakenForTheOneThatIsLoaded) {
  const TemporaryFolder folder;
  const fs::path path = folder.path() / "libmine.so";
  fs::copy_file(built("sums"), path);
  const serve::Operator first = operators::load_library(path);
  fs::copy_file(built("altered"), folder.path() / "new.so");
  fs::rename(folder.path() / "new.so", path);
  const Refused error = refused<UsageError>(path);
  EXPECT_THAT(error.says, HasSubstr("libmine.so has changed since this program loaded it"));
  EXPECT_EQ(answer_of(first, query_of(first, 3)).size(), first.answer_bytes) << "a loaded library stays";
}

}  // namespace
}  // namespace headrace::testing
