#include <gtest/gtest.h>

#include "cuda_only.hpp"
#include "headrace/base/error.hpp"

namespace headrace {
namespace {

// These tests run on any machine, in every build with CUDA. Without a GPU they prove that the library loads.

TEST(CudaAbsence, IsExplainedExactlyWhereThereIsNoDevice) {
  EXPECT_EQ(Device::cuda_absence().empty(), !testing::cuda_devices().empty());
}

TEST(CudaAbsence, LeavesTheCpuAlone) {
  const auto devices = Device::list();
  ASSERT_FALSE(devices.empty());
  EXPECT_EQ(devices.size() - testing::cuda_devices().size(), devices.back().kind() == DeviceKind::cpu ? 1U : 0U);
}

TEST(CudaAbsence, IsNamedByTheErrorForADeviceThatIsNotThere) {
  const std::string absence = Device::cuda_absence();
  try {
    static_cast<void>(Device::parse("cuda:1000"));
    FAIL() << "there is no cuda:1000";
  } catch (const UsageError& error) {
    EXPECT_EQ(error.code(), Errc::not_found);
    EXPECT_NE(std::string(error.what()).find(absence), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace headrace
