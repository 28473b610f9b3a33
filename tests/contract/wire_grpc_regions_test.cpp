#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "tests/contract/shared_memory_device.hpp"
#include "tests/fuzz/served_models.hpp"
#include "wire/grpc/calls.hpp"
#include "wire/grpc/proto_reader.hpp"
#include "wire/grpc/proto_writer.hpp"
#include "wire/request_error.hpp"

/// Messages of gRPC about memory of a device, by the numbers of Triton's service definition.
namespace headrace::testing {
namespace {

namespace grpc = wire::grpc;

std::string registration(std::string_view name, std::uint64_t device, std::uint64_t bytes) {
  std::string message;
  grpc::put_bytes(message, 1, name);
  grpc::put_bytes(message, 2, {reinterpret_cast<const char*>(kClientHandle.data()), kClientHandle.size()});
  grpc::put_number_field(message, 3, device);
  grpc::put_number_field(message, 4, bytes);
  return message;
}

std::string naming(std::string_view name) {
  std::string message;
  grpc::put_bytes(message, 1, name);
  return message;
}

class WireGrpcRegions : public ::testing::Test {
 protected:
  std::string call(grpc::Method method, std::string_view message) {
    const wire::Models models = wire::models();
    Budget budget(1 << 20);
    wire::InferencePool pool(budget, 0);
    return grpc::call({.models = models, .regions = regions_}, method, message, pool).message;
  }

  SharedMemoryDevice device_{4096};
  wire::SharedRegions regions_{false, {device_.device(), device_.device()}, 4096};
};

TEST_F(WireGrpcRegions, AreRegisteredListedAndUnregistered) {
  EXPECT_EQ(call(grpc::Method::cuda_region_register, registration("a", 1, 64)), "");
  EXPECT_EQ(call(grpc::Method::cuda_region_register, registration("b", 0, 32)), "");
  EXPECT_EQ(device_.client.mapped, 2);

  const std::string whole = call(grpc::Method::cuda_region_status, naming("a"));
  grpc::ProtoReader regions(whole);
  ASSERT_TRUE(regions.next());
  ASSERT_EQ(regions.field(), 1U);
  grpc::ProtoReader entry = regions.message();
  ASSERT_TRUE(entry.next());
  EXPECT_EQ(entry.text(), "a");
  ASSERT_TRUE(entry.next());
  ASSERT_EQ(entry.field(), 2U);
  grpc::ProtoReader region = entry.message();
  ASSERT_TRUE(region.next());
  EXPECT_EQ(region.field(), 1U);
  EXPECT_EQ(region.text(), "a");
  ASSERT_TRUE(region.next());
  EXPECT_EQ(region.field(), 2U);
  EXPECT_EQ(region.number(), 0U) << "the fake devices have one ordinal";
  ASSERT_TRUE(region.next());
  EXPECT_EQ(region.field(), 3U);
  EXPECT_EQ(region.number(), 64U);
  EXPECT_FALSE(region.next());
  EXPECT_FALSE(regions.next()) << "only the named region";

  EXPECT_EQ(call(grpc::Method::cuda_region_unregister, naming("a")), "");
  EXPECT_EQ(device_.client.mapped, 1);
  EXPECT_EQ(call(grpc::Method::cuda_region_unregister, ""), "");
  EXPECT_EQ(device_.client.mapped, 0);
  EXPECT_EQ(call(grpc::Method::cuda_region_status, ""), "");
}

TEST_F(WireGrpcRegions, RefuseDevicesThatAreNotThere) {
  for (const std::uint64_t device : {std::uint64_t{2}, ~std::uint64_t{0}}) {
    EXPECT_THROW((void)call(grpc::Method::cuda_region_register, registration("a", device, 64)), wire::RequestError);
  }
  EXPECT_THROW((void)call(grpc::Method::cuda_region_register, ""), wire::RequestError);
  EXPECT_THROW((void)call(grpc::Method::system_region_status, ""), wire::RequestError);
  EXPECT_EQ(device_.client.mapped, 0);
}

TEST(WireGrpcMethods, HaveTritonsNames) {
  for (const std::string_view kind : {"System", "Cuda"}) {
    for (const std::string_view act : {"Status", "Register", "Unregister"}) {
      const std::string path =
          "/inference.GRPCInferenceService/" + std::string(kind) + "SharedMemory" + std::string(act);
      EXPECT_TRUE(grpc::find_method(path)) << path;
    }
  }
}

}  // namespace
}  // namespace headrace::testing
