// What TCP over loopback carries when nothing reads the messages, for the comparison in wire_rates.py: pairs of threads,
// each with one connection, exchange messages of the same sizes as a server and its clients. A thread takes all that has
// come, and answers with one send().
//
//     loopback_echo BYTES_OF_A_REQUEST BYTES_OF_A_REPLY IN_FLIGHT PAIRS SECONDS
//
// Prints the exchanges per second of all pairs together. No pair has more than IN_FLIGHT requests under way.

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>

static size_t request_bytes, reply_bytes, in_flight;
static atomic_int stopping;
static atomic_ulong exchanges;

struct side {
  int socket;
  int asks;
};

static void fail(const char* doing) {
  perror(doing);
  exit(1);
}

static void send_all(int socket, const char* bytes, size_t count) {
  while (count > 0 && !atomic_load_explicit(&stopping, memory_order_relaxed)) {
    const ssize_t sent = send(socket, bytes, count, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno != EAGAIN) return;
    if (sent > 0) {
      bytes += sent;
      count -= (size_t)sent;
    }
  }
}

// Either side: for every message that has come, one goes out.
static void* run(void* of) {
  const struct side side = *(const struct side*)of;
  const size_t in = side.asks ? reply_bytes : request_bytes;
  const size_t out = side.asks ? request_bytes : reply_bytes;
  char* const received = calloc(in_flight, in);
  char* const sent = calloc(in_flight, out);
  if (received == NULL || sent == NULL) fail("loopback_echo");
  size_t rest = 0;  // bytes of a message that has come in part
  unsigned long done = 0;
  if (side.asks) send_all(side.socket, sent, in_flight * out);
  while (!atomic_load_explicit(&stopping, memory_order_relaxed)) {
    const ssize_t got = recv(side.socket, received, in_flight * in, MSG_DONTWAIT);
    if (got == 0 || (got < 0 && errno != EAGAIN)) break;
    if (got < 0) continue;
    const size_t messages = (rest + (size_t)got) / in;
    rest = (rest + (size_t)got) % in;
    done += messages;
    send_all(side.socket, sent, messages * out);
  }
  if (side.asks) atomic_fetch_add(&exchanges, done);
  free(received);
  free(sent);
  return NULL;
}

int main(int count, char** words) {
  if (count != 6) {
    fprintf(stderr, "usage: loopback_echo BYTES_OF_A_REQUEST BYTES_OF_A_REPLY IN_FLIGHT PAIRS SECONDS\n");
    return 2;
  }
  request_bytes = strtoul(words[1], NULL, 10);
  reply_bytes = strtoul(words[2], NULL, 10);
  in_flight = strtoul(words[3], NULL, 10);
  const size_t pairs = strtoul(words[4], NULL, 10);
  const double seconds = strtod(words[5], NULL);
  if (request_bytes == 0 || reply_bytes == 0 || in_flight == 0 || pairs == 0 || !(seconds > 0)) {
    fprintf(stderr, "loopback_echo: every number must be above 0\n");
    return 2;
  }
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t length = sizeof address;
  if (listener < 0 || bind(listener, (struct sockaddr*)&address, sizeof address) != 0 || listen(listener, 1) != 0 ||
      getsockname(listener, (struct sockaddr*)&address, &length) != 0) {
    fail("listening");
  }
  struct side* const sides = calloc(2 * pairs, sizeof *sides);
  pthread_t* const threads = calloc(2 * pairs, sizeof *threads);
  if (sides == NULL || threads == NULL) fail("loopback_echo");
  for (size_t i = 0; i < 2 * pairs; i += 2) {
    sides[i] = (struct side){.socket = socket(AF_INET, SOCK_STREAM, 0), .asks = 1};
    if (connect(sides[i].socket, (struct sockaddr*)&address, sizeof address) != 0) fail("connecting");
    sides[i + 1] = (struct side){.socket = accept(listener, NULL, NULL)};
    for (size_t j = i; j < i + 2; ++j) {
      if (setsockopt(sides[j].socket, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int)) != 0) fail("TCP_NODELAY");
    }
  }
  for (size_t i = 0; i < 2 * pairs; ++i) {
    if (pthread_create(&threads[i], NULL, run, &sides[i]) != 0) fail("starting a thread");
  }
  const struct timespec duration = {.tv_sec = (time_t)seconds, .tv_nsec = (long)((seconds - (double)(time_t)seconds) * 1e9)};
  nanosleep(&duration, NULL);
  atomic_store(&stopping, 1);
  for (size_t i = 0; i < 2 * pairs; ++i) pthread_join(threads[i], NULL);
  printf("%.0f\n", (double)atomic_load(&exchanges) / seconds);
  return 0;
}
