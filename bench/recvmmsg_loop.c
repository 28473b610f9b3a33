// The plain receiver for the comparison in ingest_udp_cpu.py: it calls recvmmsg() into the same 64 buffers and reads
// the number of each datagram, until none has arrived for a while.
//
//     recvmmsg_loop BYTES_OF_A_DATAGRAM
//
// Prints the port first, and at the end the count of datagrams, the sum of their numbers, and processor seconds.

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>

enum { kBurst = 64, kBuffer = 8 << 20 };

static double seconds_of(struct timeval time) { return (double)time.tv_sec + (double)time.tv_usec * 1e-6; }

int main(int count, char** words) {
  const size_t bytes = count > 1 ? strtoul(words[1], NULL, 10) : 0;
  const int receiver = socket(AF_INET, SOCK_DGRAM, 0);
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t length = sizeof address;
  const int buffer = kBuffer;
  struct timeval silence = {.tv_sec = 2};
  if (setsockopt(receiver, SOL_SOCKET, SO_RCVBUFFORCE, &buffer, sizeof buffer) != 0) {
    setsockopt(receiver, SOL_SOCKET, SO_RCVBUF, &buffer, sizeof buffer);
  }
  setsockopt(receiver, SOL_SOCKET, SO_RCVTIMEO, &silence, sizeof silence);
  char* const memory = malloc(kBurst * bytes);
  if (bytes < sizeof(uint64_t) || memory == NULL || bind(receiver, (struct sockaddr*)&address, sizeof address) != 0 ||
      getsockname(receiver, (struct sockaddr*)&address, &length) != 0) {
    perror("recvmmsg_loop");
    return 1;
  }
  printf("%u\n", ntohs(address.sin_port));
  fflush(stdout);
  static struct iovec vectors[kBurst];
  static struct mmsghdr messages[kBurst];
  for (size_t i = 0; i < kBurst; ++i) {
    vectors[i] = (struct iovec){.iov_base = memory + i * bytes, .iov_len = bytes};
    messages[i].msg_hdr = (struct msghdr){.msg_iov = &vectors[i], .msg_iovlen = 1};
  }
  uint64_t datagrams = 0;
  uint64_t numbers = 0;
  for (;;) {
    const int got = recvmmsg(receiver, messages, kBurst, MSG_WAITFORONE, NULL);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0 && datagrams == 0) continue;
    if (got <= 0) break;
    for (int i = 0; i < got; ++i) {
      uint64_t number = 0;
      memcpy(&number, vectors[i].iov_base, sizeof number);
      numbers += be64toh(number);
    }
    datagrams += (uint64_t)got;
  }
  struct rusage used;
  getrusage(RUSAGE_SELF, &used);
  printf("%llu %llu %.6f\n", (unsigned long long)datagrams, (unsigned long long)numbers,
         seconds_of(used.ru_utime) + seconds_of(used.ru_stime));
  return 0;
}
