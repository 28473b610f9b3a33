#pragma once

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <functional>
#include <string>
#include <thread>

namespace headrace::testing {

/// Runs `body` in a thread with its own network namespace: interfaces, addresses and programs disappear with it,
/// however it ends. Returns why that failed, or an empty string. Threads that it starts are in the namespace too.
[[nodiscard]] inline std::string in_namespace(const std::function<void()>& body) {
  std::string lack;
  std::thread([&] {
    if (::unshare(CLONE_NEWNET) != 0) {
      lack = std::string("no network namespace of its own: ") + std::strerror(errno);
    } else if (std::system("ip link set lo up 2>/dev/null") != 0) {
      lack = "no working ip command (iproute2)";
    } else {
      try {
        body();
      } catch (const std::exception& error) {
        ADD_FAILURE() << error.what();
      }
    }
  }).join();
  return lack;
}

/// Runs `body` in a thread without any rights; false if rights cannot be dropped.
[[nodiscard]] inline bool without_rights(const std::function<void()>& body) {
  if (::geteuid() != 0) return false;
  bool taken = false;
  std::thread([&] {
    // By the system call, because the library's setresuid() changes every thread.
    taken = ::syscall(SYS_setresuid, 65534, 65534, 65534) == 0;
    if (taken) body();
  }).join();
  return taken;
}

/// Runs a command in the namespace of the calling thread.
inline void command(const std::string& line) { ASSERT_EQ(std::system(line.c_str()), 0) << line; }

/// Creates interfaces "left" and "right", joined by a wire: up, without IPv6, with 4 queues, and with an address on the
/// left and a neighbour 10.77.0.2 there, which is on the right but unknown to the kernel as its own.
inline void make_veth(const std::string& mtu = "1500") {
  command("ip link add left numtxqueues 4 numrxqueues 4 type veth peer name right numtxqueues 4 numrxqueues 4");
  for (const char* side : {"left", "right"}) {
    command(std::string("ip link set ") + side + " addrgenmode none");
    command(std::string("ip link set ") + side + " up mtu " + mtu);
  }
  command("ip addr add 10.77.0.1/24 dev left");
  command("ip neigh add 10.77.0.2 lladdr 02:00:00:00:00:02 dev left");
  command("ip link set right address 02:00:00:00:00:02");
}

}  // namespace headrace::testing
