#include "headrace/config.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

namespace headrace {
namespace {

TEST(Config, VersionIsThatOfTheVersionFile) {
  std::ifstream file(HEADRACE_VERSION_FILE);
  std::string version;
  ASSERT_TRUE(file >> version) << "cannot read " HEADRACE_VERSION_FILE;
  EXPECT_EQ(version, kVersion);
}

}  // namespace
}  // namespace headrace
