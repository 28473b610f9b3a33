#include "wire/tokens.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <optional>
#include <string>
#include <string_view>

#include "headrace/base/error.hpp"
#include "tests/temporary_folder.hpp"

/// Values of the Authorization header that contain a token from a file.
namespace headrace::wire {
namespace {

class WireTokens : public ::testing::Test {
 protected:
  [[nodiscard]] std::string file_with(std::string_view content) const {
    std::string file = folder_.path() / "tokens";
    std::ofstream(file, std::ios::binary) << content;
    return file;
  }

  testing::TemporaryFolder folder_;
};

TEST_F(WireTokens, AreTakenWholeAlone) {
  const Tokens tokens(file_with("# a comment\n\n0123456789abcdef alice\n  fedcba9876543210zzzz\tbob\r\n"));
  EXPECT_EQ(tokens.count(), 2U);
  EXPECT_EQ(tokens.check(std::nullopt), Admission::missing);
  for (const std::string_view granted : {"Bearer 0123456789abcdef", "bEARER   fedcba9876543210zzzz  "}) {
    EXPECT_EQ(tokens.check(granted), Admission::granted) << granted;
  }
  for (const std::string_view missing :
       {"", "   ", "Basic 0123456789abcdef", "Bearer0123456789abcdef", "0123456789abcdef"}) {
    EXPECT_EQ(tokens.check(missing), Admission::missing) << missing;
  }
  for (const std::string_view wrong :
       {"Bearer", "Bearer ", "Bearer 0", "Bearer 0123456789abcde", "Bearer 0123456789abcdefz",
        "Bearer fedcba9876543210", "Bearer fedcba9876543210zzz", "Bearer fedcba9876543210zzzzz",
        "Bearer 0123456789abcdef0123456789abcdef", "Bearer 0123456789abcdef alice", "Bearer alice", "Bearer #"}) {
    EXPECT_EQ(tokens.check(wrong), Admission::wrong) << wrong;
  }
  EXPECT_EQ(tokens.check("Bearer " + std::string(100'000, '0')), Admission::wrong);
}

TEST_F(WireTokens, DifferInAnyBit) {
  const std::string token(Tokens::kBytesMax, 'x');
  const Tokens tokens(file_with(token + "\n"));
  ASSERT_EQ(tokens.check("Bearer " + token), Admission::granted);
  for (std::size_t at = 0; at < token.size(); ++at) {
    std::string other = "Bearer " + token;
    other[7 + at] = static_cast<char>(other[7 + at] ^ (1 << at % 6));
    EXPECT_EQ(tokens.check(other), Admission::wrong) << at;
  }
}

TEST_F(WireTokens, AreNotInErrors) {
  for (const std::string content :
       {"0123456789abcdef\n0123456789abcdef\n", "0123456789abcdef,\n", "012345678\n", "\n"}) {
    try {
      const Tokens tokens(file_with(content));
      ADD_FAILURE() << content;
    } catch (const UsageError& error) {
      EXPECT_EQ(std::string(error.what()).find("0123456"), std::string::npos) << error.what();
    }
  }
  EXPECT_THROW(Tokens("/nothing/here"), SystemError);
}

}  // namespace
}  // namespace headrace::wire
