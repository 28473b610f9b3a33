#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "headrace/config.hpp"
#include "headrace/wire/server.hpp"
#include "tests/contract/shared_memory_device.hpp"
#include "tests/fuzz/served_models.hpp"
#include "wire/http/routes.hpp"
#include "wire/request_error.hpp"
#include "wire/shared_regions.hpp"

/// Regions of both kinds that clients register, on a device that shares memory as a CUDA device does.
namespace headrace::testing {
namespace {

using wire::RegionKind;
using wire::RequestError;
using wire::Rows;
using wire::SharedRegions;

constexpr std::string_view kHandleText =
    "BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBw==";

/// Status and message of the error that `act` throws; 0 if it throws none.
template <class Act>
std::pair<int, std::string> region_refusal(Act act) {
  try {
    act();
    return {0, ""};
  } catch (const RequestError& error) {
    return {error.status(), error.what()};
  }
}

auto refused_with(int status, const std::string& says) { return ::testing::Pair(status, ::testing::HasSubstr(says)); }

/// A POSIX shared memory object of 64 bytes.
class SystemObject {
 public:
  SystemObject() : key_(fmt::format("/headrace-test-regions-{}", ::getpid())) {
    const int file = ::shm_open(key_.c_str(), O_RDWR | O_CREAT, 0600);
    if (file < 0 || ::ftruncate(file, 64) != 0) throw_errno("making shared memory");
    ::close(file);
  }
  SystemObject(const SystemObject&) = delete;
  SystemObject& operator=(const SystemObject&) = delete;
  ~SystemObject() { ::shm_unlink(key_.c_str()); }
  [[nodiscard]] const std::string& key() const noexcept { return key_; }

 private:
  std::string key_;
};

class WireRegions : public ::testing::Test {
 protected:
  static constexpr std::size_t kClientBytes = 8 << 20;

  void add(const std::string& name, std::uint64_t bytes = 64) { regions_.add_cuda(name, kClientHandle, 0, bytes); }
  [[nodiscard]] std::vector<std::string> names(RegionKind kind) const {
    std::vector<std::string> found;
    for (const auto& region : regions_.list(kind, "")) found.push_back(region->name());
    return found;
  }
  [[nodiscard]] ClientMemory& client() noexcept { return device_.client; }

  /// The reply over HTTP.
  wire::http::Reply ask(const std::string& method, const std::string& path, std::string body = "") {
    const wire::Models models = wire::models();
    const std::atomic<bool> draining{false};
    Budget budget(1 << 20);
    wire::InferencePool pool(budget, 0);
    wire::http::Message message;
    message.method = method;
    message.target = "/v2/cudasharedmemory" + path;
    message.body = std::move(body);
    return wire::http::route({.models = models, .regions = regions_, .draining = draining}, message, pool).reply;
  }

  SharedMemoryDevice device_{kClientBytes};
  SystemObject object_;
  SharedRegions regions_{true, {device_.device()}, kClientBytes};
};

TEST_F(WireRegions, RowsThatAreApartPassThroughPieces) {
  constexpr std::size_t kRows = 100'000;
  constexpr std::size_t kRowBytes = 24;
  constexpr std::size_t kStride = 40;
  add("a", kClientBytes);
  const auto region = regions_.list(RegionKind::cuda, "a").front();
  for (std::size_t i = 0; i < kClientBytes; ++i) client().bytes[i] = static_cast<std::byte>(i % 251);
  const std::vector<std::byte> before = client().bytes;

  std::vector<std::byte> rows(kRows * kStride, std::byte{255});
  region->read(8, {.first = rows.data() + 4, .count = kRows, .bytes = kRowBytes, .stride = kStride});
  EXPECT_LE(client().calls.exchange(0), 4) << "few copies";
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::size_t row = i / kStride;
    const std::size_t within = i % kStride;
    const bool is_gap = within < 4 || within >= 4 + kRowBytes;
    ASSERT_EQ(rows[i], is_gap ? std::byte{255} : before[8 + row * kRowBytes + within - 4]) << i;
  }

  std::vector<std::byte> expected = before;
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<std::byte>(i % 241);
  for (std::size_t row = 0; row < kRows; ++row) {
    std::memcpy(expected.data() + 16 + row * kRowBytes, rows.data() + row * kStride, kRowBytes);
  }
  region->write(16, {.first = rows.data(), .count = kRows, .bytes = kRowBytes, .stride = kStride});
  EXPECT_LE(client().calls.exchange(0), 4);
  EXPECT_TRUE(client().bytes == expected) << "nothing outside of the rows";
}

TEST_F(WireRegions, RowsSideBySideAreOneCopy) {
  add("a", 4096);
  const auto region = regions_.list(RegionKind::cuda, "a").front();
  std::vector<std::byte> rows(1024, std::byte{9});
  region->write(64, {.first = rows.data(), .count = 128, .bytes = 8, .stride = 8});
  EXPECT_EQ(client().bytes[64 + 1023], std::byte{9});
  EXPECT_EQ(client().bytes[64 + 1024], std::byte{0});
  rows.assign(1024, std::byte{0});
  region->read(64, {.first = rows.data(), .count = 128, .bytes = 8, .stride = 8});
  EXPECT_EQ(rows, std::vector<std::byte>(1024, std::byte{9}));
  EXPECT_EQ(client().calls, 2);
}

TEST_F(WireRegions, BothKindsShareNamesAndTheLimitAndAreListedApart) {
  add("a", kClientBytes - 64);
  EXPECT_THAT(region_refusal([&] { add("a"); }), refused_with(409, "already registered"));
  EXPECT_THAT(region_refusal([&] { regions_.add_system("a", object_.key(), 0, 64); }), refused_with(409, "\"a\""));
  EXPECT_THAT(region_refusal([&] { regions_.add_system("b", object_.key(), 0, 64); }), refused_with(0, ""));
  EXPECT_THAT(region_refusal([&] { add("b"); }), refused_with(409, "\"b\""));
  EXPECT_THAT(region_refusal([&] { add("c"); }), refused_with(429, "are already registered"));
  EXPECT_EQ(client().mapped, 1) << "what is refused is not kept";
  EXPECT_EQ(names(RegionKind::cuda), std::vector<std::string>{"a"});
  EXPECT_EQ(names(RegionKind::system), std::vector<std::string>{"b"});
  EXPECT_THAT(region_refusal([&] { (void)regions_.list(RegionKind::cuda, "b"); }), refused_with(404, "\"b\""));

  regions_.remove(RegionKind::system, "a");  // of the other kind
  regions_.remove_all(RegionKind::system);
  EXPECT_EQ(client().mapped, 1);
  EXPECT_TRUE(names(RegionKind::system).empty());
  add("b");
  regions_.remove(RegionKind::cuda, "a");
  EXPECT_EQ(client().mapped, 1);
  regions_.remove_all(RegionKind::cuda);
  EXPECT_EQ(client().mapped, 0);
  add("whole", kClientBytes);
}

TEST_F(WireRegions, AHandleMayBeRegisteredTwiceAndARegionOutlivesItsName) {
  add("a");
  add("b");
  EXPECT_EQ(client().mapped, 2);
  wire::SharedRange used = regions_.find({.region = "b", .offset = 8, .bytes = 56}, "input", "x");
  regions_.remove_all(RegionKind::cuda);
  EXPECT_EQ(client().mapped, 1);
  EXPECT_EQ(used.region->bytes(), 64U);
  used = {};
  EXPECT_EQ(client().mapped, 0);
}

TEST_F(WireRegions, WhatCannotBeMappedIsRefusedWithTheReason) {
  EXPECT_THAT(region_refusal([&] { add("a", 0); }), refused_with(400, "at least 1 byte"));
  EXPECT_THAT(region_refusal([&] { add("a", kClientBytes + 1); }),
              refused_with(400, fmt::format("memory of its handle has {}", kClientBytes)));
  EXPECT_THAT(region_refusal([&] { add("a\n"); }), refused_with(400, "name of a region"));
  for (const std::int64_t device : {std::int64_t{-1}, std::int64_t{1}, std::int64_t{1} << 40}) {
    EXPECT_THAT(region_refusal([&] { regions_.add_cuda("a", kClientHandle, device, 8); }),
                refused_with(400, fmt::format("no CUDA device {}", device)));
  }
  const std::vector<std::byte> other(kMemoryHandleBytes, std::byte{1});
  EXPECT_THAT(region_refusal([&] { regions_.add_cuda("a", other, 0, 8); }),
              refused_with(400, "another process shares"));
  EXPECT_THAT(region_refusal([&] { regions_.add_cuda("a", std::span(other).first(63), 0, 8); }),
              refused_with(400, "has 64 bytes, but this one has 63"));
  using Case = std::tuple<Errc, int, std::string>;
  for (const auto& [code, status, says] :
       {Case(Errc::not_found, 400, "another process shares"), Case(Errc::full, 503, "resident kernel"),
        Case(Errc::not_supported, 501, "cannot share memory"), Case(Errc::out_of_memory, 503, "out of memory"),
        Case(Errc::device_fault, 503, "device"), Case(Errc::system, 500, "region")}) {
    client().opens = code;
    EXPECT_THAT(region_refusal([&] { add("a"); }), refused_with(status, says));
  }
  EXPECT_EQ(client().mapped, 0);
  EXPECT_TRUE(names(RegionKind::cuda).empty());
}

TEST_F(WireRegions, ACopyThatFailsIsAnErrorOfTheRequest) {
  add("a");
  const auto region = regions_.list(RegionKind::cuda, "a").front();
  client().copies = kFault;
  std::vector<std::byte> rows(64);
  for (const std::size_t stride : {8U, 16U}) {
    const Rows<std::byte> to{.first = rows.data(), .count = 4, .bytes = 8, .stride = stride};
    const Rows<const std::byte> from{.first = rows.data(), .count = 4, .bytes = 8, .stride = stride};
    EXPECT_THAT(region_refusal([&] { region->read(0, to); }), refused_with(503, "region \"a\": cpu:0: "));
    EXPECT_THAT(region_refusal([&] { region->write(0, from); }), refused_with(503, "region \"a\": cpu:0: "));
  }
}

TEST_F(WireRegions, OverHttpTheyAreRegisteredListedAndUnregistered) {
  const std::string right =
      fmt::format(R"({{"raw_handle": {{"b64": "{}"}}, "device_id": 0, "byte_size": 64}})", kHandleText);
  EXPECT_EQ(ask("POST", "/region/a/register", right).status, 200);
  EXPECT_EQ(ask("POST", "/region/a/register", right).status, 409);
  const std::string listed = R"([{"byte_size":64,"device_id":0,"name":"a"}])";
  EXPECT_EQ(ask("GET", "/status").body, listed);
  EXPECT_EQ(ask("GET", "/region/a/status").body, listed);
  EXPECT_EQ(ask("GET", "/region/b/status").status, 404);
  EXPECT_EQ(ask("GET", "/region/a/register").status, 405);
  EXPECT_EQ(ask("GET", "/other").status, 404);
  EXPECT_EQ(ask("POST", "/region/a/unregister").status, 200);
  EXPECT_EQ(ask("POST", "/region/a/unregister").status, 200);
  EXPECT_EQ(ask("GET", "/status").body, "[]");
  EXPECT_EQ(ask("POST", "/region/a/register", right).status, 200);
  EXPECT_EQ(ask("POST", "/unregister").status, 200);
  EXPECT_EQ(client().mapped, 0);
}

TEST_F(WireRegions, ARegistrationOverHttpHasToBeWhole) {
  const std::string handle = fmt::format(R"("raw_handle": {{"b64": "{}"}})", kHandleText);
  for (const std::string& body :
       {std::string(), std::string("[]"), std::string("{}"), std::string("nothing"), "{" + handle + "}",
        "{" + handle + R"(, "device_id": 0})", "{" + handle + R"(, "byte_size": 8})",
        "{" + handle + R"(, "device_id": "0", "byte_size": 8})",
        "{" + handle + R"(, "device_id": 0.5, "byte_size": 8})", "{" + handle + R"(, "device_id": 0, "byte_size": -8})",
        "{" + handle + R"(, "device_id": 0, "byte_size": null})",
        std::string(R"({"raw_handle": "a", "device_id": 0, "byte_size": 8})"),
        std::string(R"({"raw_handle": {"b64": 7}, "device_id": 0, "byte_size": 8})"),
        std::string(R"({"device_id": 0, "byte_size": 8})")}) {
    const wire::http::Reply reply = ask("POST", "/region/a/register", body);
    EXPECT_EQ(reply.status, 400) << body;
    EXPECT_THAT(reply.body, ::testing::HasSubstr("a register request must be a JSON object")) << body;
  }
  const auto reply_to = [&](std::string_view text) {
    return ask("POST", "/region/a/register",
               fmt::format(R"({{"raw_handle": {{"b64": "{}"}}, "device_id": 0, "byte_size": 8}})", text));
  };
  EXPECT_THAT(reply_to("BwcH*").body, ::testing::HasSubstr("not valid base64"));
  EXPECT_EQ(reply_to("BwcH*").status, 400);
  EXPECT_THAT(reply_to("BwcH").body, ::testing::HasSubstr("has 64 bytes, but this one has 3"));
  EXPECT_EQ(reply_to("").status, 400);
}

TEST_F(WireRegions, AServerThatDoesNotOfferAKindNamesTheOption) {
  SharedRegions system(true, {}, 64);
  EXPECT_THAT(region_refusal([&] { system.add_cuda("a", kClientHandle, 0, 8); }),
              refused_with(501, "--cuda-shared-memory"));
  EXPECT_THAT(region_refusal([&] { (void)system.list(RegionKind::cuda, ""); }), refused_with(501, "does not offer"));
  EXPECT_TRUE(system.list(RegionKind::system, "").empty());
  SharedRegions cuda(false, {device_.device()}, 64);
  EXPECT_THAT(region_refusal([&] { cuda.remove_all(RegionKind::system); }), refused_with(501, "with --shared-memory"));
  cuda.add_cuda("a", kClientHandle, 0, 64);
  EXPECT_EQ(cuda.find({.region = "a", .bytes = 64}, "input", "x").region->kind(), RegionKind::cuda);
}

TEST(WireRegionsOfAServer, NeedACudaDevice) {
  if (!shareable_devices().empty()) GTEST_SKIP() << "there is a CUDA device";
  try {
    const wire::Server server({.http_port = 0, .cuda_shared_memory = true}, {});
    FAIL() << "the server started";
  } catch (const UsageError& error) {
    EXPECT_EQ(error.what(),
              "server: CUDA shared memory needs a CUDA device, and there is none: " + Device::cuda_absence());
  }
}

}  // namespace
}  // namespace headrace::testing
