#include "headrace/config.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

namespace headrace {
namespace {

TEST(Config, VersionIsThatOfTheVersionFile) {
  // The path is that of this file, so that the test runs in any folder.
  std::string path = __FILE__;
  path.resize(path.rfind("tests/unit/"));
  std::ifstream file(path + "VERSION");
  std::string version;
  ASSERT_TRUE(file >> version) << "cannot read " << path << "VERSION";
  EXPECT_EQ(version, kVersion);
}

}  // namespace
}  // namespace headrace
