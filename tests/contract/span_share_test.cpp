#include <fcntl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>

#include "tests/contract/span_support.hpp"

/// Pages of a span in another process.
namespace headrace::testing {
namespace {

class SpanShareTest : public SpanTest {};

TEST_P(SpanShareTest, PagesAreMappedAgain) {
  Stream stream(device());
  Span span(device(), 3 * kPageBytes - 5, Placement::all(here()), {.shareable = true});
  const auto bytes = some_bytes(span.bytes(), 20);
  write(span, stream, bytes);
  const SharedPages shared = span.share();
  EXPECT_EQ(shared.bytes, bytes.size());
  EXPECT_EQ(shared.device, device());
  ASSERT_EQ(shared.descriptors.size(), 3U);
  Span again(shared);
  for (const int descriptor : shared.descriptors) close(descriptor);
  EXPECT_NE(again.data(), span.data());
  EXPECT_EQ(again.bytes(), bytes.size());
  EXPECT_EQ(again.place(2), here());
  EXPECT_TRUE(read(again, stream) == bytes);
  const auto more = some_bytes(span.bytes(), 21);
  write(again, stream, more);
  EXPECT_TRUE(read(span, stream) == more) << "the same memory";
  expect_usage_error([&] { again.move(stream, {0, 1}, Place::host()); }, "another process's span cannot be moved");
  expect_usage_error([&] { static_cast<void>(again.share()); }, "not made shareable");
  span.release();
  EXPECT_TRUE(read(again, stream) == more) << "the pages live as long as a process maps them";
}

TEST_P(SpanShareTest, HostPagesAreRefused) {
  const SpanOptions shareable{.shareable = true};
  const Span host(device(), 2 * kPageBytes, Placement::map({here(), Place::host()}), shareable);
  expect_usage_error([&] { static_cast<void>(host.share()); }, "host pages cannot be exported");
  const Span plain(device(), kPageBytes, Placement::all(here()));
  expect_usage_error([&] { static_cast<void>(plain.share()); }, "not made shareable");
  if (const auto other = peer()) {
    const Span two(device(), 2 * kPageBytes, Placement::map({here(), Place::on(*other)}), shareable);
    expect_usage_error([&] { static_cast<void>(two.share()); }, "on several devices");
  }
}

TEST_P(SpanShareTest, MovedBackToTheDeviceTheyCanBeShared) {
  Stream stream(device());
  Span span(device(), 2 * kPageBytes, Placement::all(here()), {.shareable = true});
  const auto bytes = some_bytes(span.bytes(), 22);
  write(span, stream, bytes);
  span.move(stream, {0, 1}, Place::host());
  expect_usage_error([&] { static_cast<void>(span.share()); }, "host pages");
  span.move(stream, {0, 1}, here());
  const SharedPages shared = span.share();
  {
    const Span again(shared);
    EXPECT_TRUE(read(again, stream) == bytes);
  }
  for (const int descriptor : shared.descriptors) close(descriptor);
}

TEST_P(SpanShareTest, WhatAreNoPagesIsRefused) {
  {  // A driver opens its own files at its first use.
    const Span span(device(), kPageBytes, Placement::all(here()), {.shareable = true});
    const SharedPages shared = span.share();
    const Span again(shared);
    for (const int descriptor : shared.descriptors) close(descriptor);
  }
  const std::size_t before = open_descriptors();
  const auto taken = [&](std::size_t bytes, std::vector<int> descriptors) {
    return [=] { const Span span(SharedPages{bytes, device(), descriptors}); };
  };
  expect_usage_error(taken(0, {}), "need at least one byte");
  expect_usage_error(taken(2 * kPageBytes, {0}), "2 pages, but there are 1 descriptors");
  expect_usage_error(taken(~std::size_t{0}, {0}), "descriptors");
  expect_usage_error(taken(kPageBytes, {-1}), "file descriptor -1");
  expect_usage_error(taken(kPageBytes, {987654}), "file descriptor 987654");
  std::FILE* const file = std::tmpfile();
  expect_usage_error(taken(1, {fileno(file)}), "importing page 1 of 1");
  std::fclose(file);
  const int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
  expect_usage_error(taken(kPageBytes, {nothing}), "importing page 1 of 1");
  close(nothing);
  EXPECT_EQ(open_descriptors(), before);
}

HEADRACE_ON_EVERY_DEVICE(SpanShareTest);

constexpr std::size_t kSharedPages = 3;

union Control {
  cmsghdr header;
  std::array<char, CMSG_SPACE(sizeof(int) * kSharedPages)> bytes;
};

/// Sends the descriptors over a Unix socket, or receives them from it if `receive` is set.
bool pass_descriptors(int socket, std::array<int, kSharedPages>& descriptors, bool receive) {
  char byte = 'x';
  iovec one{&byte, 1};
  Control control{};
  msghdr message{};
  message.msg_iov = &one;
  message.msg_iovlen = 1;
  message.msg_control = control.bytes.data();
  message.msg_controllen = control.bytes.size();
  if (receive && recvmsg(socket, &message, 0) != 1) return false;
  cmsghdr* const header = CMSG_FIRSTHDR(&message);
  if (header == nullptr) return false;
  if (receive) {
    std::memcpy(descriptors.data(), CMSG_DATA(header), sizeof(descriptors));
    return true;
  }
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(descriptors));
  std::memcpy(CMSG_DATA(header), descriptors.data(), sizeof(descriptors));
  return sendmsg(socket, &message, 0) == 1;
}

/// The other process maps the pages, checks the first byte of each and adds 1 to it. Returns 0 if all was right. It
/// runs no stream, because a forked process has none of its parent's threads.
int add_one_in_child(int socket, Device device) {
  std::array<int, kSharedPages> received{};
  if (!pass_descriptors(socket, received, true)) return 1;
  const Span span(SharedPages{kSharedPages * kPageBytes, device, {received.begin(), received.end()}});
  for (const int descriptor : received) close(descriptor);
  for (std::size_t page = 0; page < kSharedPages; ++page) {
    std::byte& byte = span.data()[page * kPageBytes];
    if (byte != static_cast<std::byte>(page + 40)) return 2;
    byte = static_cast<std::byte>(page + 41);
  }
  return 0;
}

TEST(CpuSpanShare, WithAnotherProcessOverASocket) {
  const Device device = Device::parse("cpu");
  const Span span(device, kSharedPages * kPageBytes, Placement::all(Place::on(device)), {.shareable = true});
  for (std::size_t page = 0; page < kSharedPages; ++page) {
    span.data()[page * kPageBytes] = static_cast<std::byte>(page + 40);
  }
  std::array<int, 2> sockets{};
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets.data()), 0);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) _exit(add_one_in_child(sockets[1], device));
  const SharedPages shared = span.share();
  std::array<int, kSharedPages> descriptors{};
  std::copy(shared.descriptors.begin(), shared.descriptors.end(), descriptors.begin());
  EXPECT_TRUE(pass_descriptors(sockets[0], descriptors, false));
  for (const int descriptor : descriptors) close(descriptor);
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  for (std::size_t page = 0; page < kSharedPages; ++page) {
    EXPECT_EQ(span.data()[page * kPageBytes], static_cast<std::byte>(page + 41));
  }
  for (const int socket : sockets) close(socket);
}

}  // namespace
}  // namespace headrace::testing
