#include "headrace/device/device.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "headrace/base/error.hpp"

namespace headrace {
namespace {

using ::testing::HasSubstr;

TEST(DeviceTest, ParsesNames) {
  EXPECT_EQ(Device::parse("cpu").name(), "cpu:0");
  EXPECT_EQ(Device::parse("cpu:0"), Device::parse("cpu"));
  EXPECT_EQ(Device::parse("cpu:3").name(), "cpu:3");
  EXPECT_EQ(Device::parse("cpu:3").ordinal(), 3);
  EXPECT_EQ(Device::parse("cpu:63").kind(), DeviceKind::cpu);
  EXPECT_EQ(Device::parse("best"), Device::list().front());
}

TEST(DeviceTest, ListedDevicesParseBack) {
  const auto devices = Device::list();
  ASSERT_FALSE(devices.empty());
  for (const Device device : devices) EXPECT_EQ(Device::parse(device.name()), device);
}

TEST(DeviceTest, UnknownNamesAreRefusedWithWhatThereIs) {
  for (const char* name :
       {"", "gpu", "CPU", "cpu:", "cpu:64", "cpu:-1", "cpu:1x", "cpu:99999999999", "cuda:999", "cpu:0:0", ":0"}) {
    try {
      static_cast<void>(Device::parse(name));
      FAIL() << "'" << name << "' was taken";
    } catch (const UsageError& error) {
      EXPECT_EQ(error.code(), Errc::not_found);
      EXPECT_THAT(error.what(), HasSubstr(std::string("there is no device '") + name + "'"));
      EXPECT_THAT(error.what(), HasSubstr(Device::list().back().name()));
    }
  }
}

TEST(DeviceTest, AbsenceOfCudaHasAReason) {
  bool cuda = false;
  for (const Device device : Device::list()) cuda |= device.kind() == DeviceKind::cuda;
  EXPECT_EQ(Device::cuda_absence().empty(), cuda);
}

}  // namespace
}  // namespace headrace
