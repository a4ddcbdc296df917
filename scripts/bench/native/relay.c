// The lower bound of a benchmark: copies bytes between a client and an upstream connection without inspecting them. A request
// takes two recv and two send calls, which every proxy that processes requests individually needs.
//
//   relay PORT UPSTREAM_PORT
//
// One upstream connection per client. One thread, epoll, edge-triggered; a slow side pauses the other.

#define _GNU_SOURCE
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MAX_FDS = 1 << 17, BUFFER = 1 << 17 };

struct side {
  int peer;             // -1: no connection on this descriptor
  int finished;         // its FIN has been forwarded
  char *pending;        // bytes that this side's socket did not accept
  size_t start, length; // of pending
};

static struct side sides[MAX_FDS];
static int epoll, upstream_port, closed_count, closed[1024];
static char buffer[BUFFER];

static void watch(int fd, int peer) {
  int one = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  sides[fd] = (struct side){.peer = peer};
  struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, .data.fd = fd};
  epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
}

static int dial(void) {
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((in_port_t)upstream_port)};
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (fd < 0 || (connect(fd, (struct sockaddr *)&address, sizeof address) && errno != EINPROGRESS)) {
    perror("relay: connect");
    exit(1);
  }
  return fd;
}

// Descriptors are closed after the batch of events, because otherwise a new connection could reuse a number that is still in it.
static void drop(int fd) {
  int both[2] = {fd, sides[fd].peer};
  for (int i = 0; i < 2; i++) {
    free(sides[both[i]].pending);
    sides[both[i]] = (struct side){.peer = -1};
    closed[closed_count++] = both[i];
  }
}

// Copies from `fd` to its peer until nothing is left to read or the peer's socket is full.
static void copy(int fd) {
  int peer = sides[fd].peer;
  struct side *to = &sides[peer];
  while (to->length == 0 && !to->finished) {
    ssize_t n = recv(fd, buffer, BUFFER, 0);
    if (n < 0) {
      if (errno != EAGAIN) drop(fd);
      return;
    }
    if (n == 0) {
      to->finished = 1;
      shutdown(peer, SHUT_WR);
      if (sides[fd].finished) drop(fd);
      return;
    }
    ssize_t sent = send(peer, buffer, (size_t)n, MSG_NOSIGNAL);
    if (sent < 0 && errno != EAGAIN) return drop(fd);
    if (sent < 0) sent = 0;
    if (sent < n) {
      if (!to->pending) to->pending = malloc(BUFFER);
      to->start = 0;
      to->length = (size_t)(n - sent);
      memcpy(to->pending, buffer + sent, to->length);
    }
    if (n < BUFFER) return;  // drained: further bytes trigger a new edge
  }
}

// Sends the pending bytes of `fd`; when all are sent, resumes reading from its peer.
static void flush(int fd) {
  struct side *side = &sides[fd];
  if (side->length == 0) return;
  ssize_t sent = send(fd, side->pending + side->start, side->length, MSG_NOSIGNAL);
  if (sent < 0) {
    if (errno != EAGAIN) drop(fd);
    return;
  }
  side->start += (size_t)sent;
  side->length -= (size_t)sent;
  if (side->length == 0) copy(side->peer);
}

int main(int argc, char **argv) {
  if (argc != 3) return 2;
  upstream_port = atoi(argv[2]);
  for (int i = 0; i < MAX_FDS; i++) sides[i].peer = -1;
  int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), one = 1;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((in_port_t)atoi(argv[1]))};
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (bind(listener, (struct sockaddr *)&address, sizeof address) || listen(listener, 4096)) {
    perror("relay");
    return 1;
  }
  epoll = epoll_create1(0);
  struct epoll_event event = {.events = EPOLLIN, .data.fd = listener}, events[512];
  epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &event);
  for (;;) {
    int count = epoll_wait(epoll, events, 512, -1);
    for (int i = 0; i < count; i++) {
      int fd = events[i].data.fd;
      if (fd == listener) {
        int client;
        while ((client = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) >= 0) {
          int upstream = dial();
          if (client >= MAX_FDS || upstream >= MAX_FDS) exit(1);
          watch(client, upstream);
          watch(upstream, client);
        }
        continue;
      }
      if (sides[fd].peer >= 0) flush(fd);
      if (sides[fd].peer >= 0 && (events[i].events & (EPOLLIN | EPOLLRDHUP))) copy(fd);
    }
    for (int i = 0; i < closed_count; i++) close(closed[i]);
    closed_count = 0;
  }
}
