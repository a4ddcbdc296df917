// Clients of a UDP echo: each keeps 8 datagrams of 64 bytes in flight, and replaces them when none has come back for 100 ms.
//
//   udp-clients PORT CLIENTS SECONDS

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>

enum { kWindow = 8, kBytes = 64, kMaxClients = 1024 };

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void send_some(int fd, int count) {
  static const char bytes[kBytes] = "x";
  for (int i = 0; i < count; i++) send(fd, bytes, sizeof bytes, 0);
}

int main(int count, char** words) {
  if (count != 4) return 2;
  const int clients = atoi(words[2]);
  if (clients < 1 || clients > kMaxClients) return 2;
  struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((unsigned short)atoi(words[1]))};
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  static struct pollfd polls[kMaxClients];
  static double last[kMaxClients];
  const double start = now();
  const double end = start + atof(words[3]);
  for (int i = 0; i < clients; i++) {
    polls[i].fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
    polls[i].events = POLLIN;
    if (connect(polls[i].fd, (struct sockaddr*)&to, sizeof to) != 0) return 1;
    last[i] = start;
    send_some(polls[i].fd, kWindow);
  }
  long echoes = 0;
  long lost = 0;
  while (now() < end) {
    poll(polls, (nfds_t)clients, 50);
    const double at = now();
    for (int i = 0; i < clients; i++) {
      char bytes[kBytes];
      int got = 0;
      while (recv(polls[i].fd, bytes, sizeof bytes, MSG_DONTWAIT) >= 0) got++;
      echoes += got;
      if (got > 0) {
        last[i] = at;
        send_some(polls[i].fd, got);
      } else if (at - last[i] > 0.1) {
        lost += kWindow;
        last[i] = at;
        send_some(polls[i].fd, kWindow);
      }
    }
  }
  printf("{\"echoes\":%ld,\"seconds\":%.3f,\"lost\":%ld}\n", echoes, now() - start, lost);
  return 0;
}
