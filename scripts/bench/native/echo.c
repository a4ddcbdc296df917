// An origin whose responses prove what it received, so that lost, duplicated and foreign bytes are detected.
//
//   echo
//
// Prints "HTTP-PORT TCP-PORT". HTTP/1.1 requests are answered with "PATH BODY-LENGTH BODY-FINGERPRINT\n", followed by as many
// pattern bytes as "pad=N" in the path requests, from the position in the path's first number. TCP connections get their bytes
// and their FIN back. Senders limit the bytes in flight. One thread, epoll, edge-triggered.

#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>
#include "pattern.h"

enum { MAX_FDS = 1 << 16, RECEIVE = 1 << 17 };

struct bytes {
  char *at;
  size_t length, capacity;
};

struct connection {
  int is_http, ended, continued;
  struct bytes in, out;
};

static struct connection *connections[MAX_FDS];
static char received[RECEIVE];

static void append(struct bytes *to, const void *from, size_t length) {
  if (to->length + length > to->capacity) {
    to->capacity = (to->length + length) * 2;
    to->at = realloc(to->at, to->capacity);
    if (!to->at) abort();
  }
  memcpy(to->at + to->length, from, length);
  to->length += length;
}

static void take(struct bytes *from, size_t length) {
  from->length -= length;
  memmove(from->at, from->at + length, from->length);
}

static void drop(int fd) {
  free(connections[fd]->in.at);
  free(connections[fd]->out.at);
  free(connections[fd]);
  connections[fd] = NULL;
  close(fd);
}

// Returns the value of a field in a NUL-terminated head, or NULL.
static const char *field(const char *head, const char *name) {
  const char *at = strcasestr(head, name);
  if (!at) return NULL;
  at += strlen(name);
  return at + strspn(at, " ");
}

// Finds the body's end, and computes its length and fingerprint. Returns the size of the body, or -1 if it is incomplete.
static ssize_t read_chunks(const char *at, size_t left, size_t *length, uint64_t *print) {
  const char *start = at, *limit = at + left;
  for (;;) {
    const char *line = memmem(at, (size_t)(limit - at), "\r\n", 2);
    if (!line) return -1;
    size_t size = strtoul(at, NULL, 16);
    at = line + 2;
    if ((size_t)(limit - at) < size + 2) return -1;
    if (size == 0) return at + 2 - start;
    *print = fingerprint(*print, at, size);
    *length += size;
    at += size + 2;
  }
}

static void answer(struct connection *c, const char *path, size_t length, uint64_t print) {
  char account[512], head[256];
  const char *pad_text = strstr(path, "pad=");
  size_t pad = pad_text ? strtoul(pad_text + 4, NULL, 10) : 0;
  if (pad > PATTERN_MAX) pad = PATTERN_MAX;
  int account_length = snprintf(account, sizeof account, "%s %zu %016" PRIx64 "\n", path, length, print);
  int head_length = snprintf(head, sizeof head,
      "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %zu\r\n\r\n", (size_t)account_length + pad);
  append(&c->out, head, (size_t)head_length);
  append(&c->out, account, (size_t)account_length);
  append(&c->out, pattern_at(strtoull(path + 1, NULL, 10)), pad);
}

// Answers the first request in the buffer if it is complete. Returns 1: answered; 0: incomplete; -1: invalid.
static int answer_one(struct connection *c) {
  char *end = c->in.length > 0 ? memmem(c->in.at, c->in.length, "\r\n\r\n", 4) : NULL;
  if (!end) return 0;
  size_t head_length = (size_t)(end + 4 - c->in.at), body_length = 0, whole = head_length;
  char *head = strndup(c->in.at, head_length), path[256];
  if (!head) abort();
  const char *length_text = field(head, "\r\ncontent-length:"), *coding = field(head, "\r\ntransfer-encoding:");
  uint64_t print = FINGERPRINT_START;
  int state = sscanf(head, "%*s %255s", path) == 1 ? 1 : -1;
  if (state == 1 && !c->continued && field(head, "\r\nexpect:")) {
    append(&c->out, "HTTP/1.1 100 Continue\r\n\r\n", 25);
    c->continued = 1;
  }
  if (state == 1 && coding) {
    ssize_t taken = read_chunks(c->in.at + head_length, c->in.length - head_length, &body_length, &print);
    if (taken < 0) state = 0;
    else whole += (size_t)taken;
  } else if (state == 1 && length_text) {
    body_length = strtoul(length_text, NULL, 10);
    whole += body_length;
    if (c->in.length < whole) state = 0;
    else print = fingerprint(print, c->in.at + head_length, body_length);
  }
  free(head);
  if (state != 1) return state;
  answer(c, path, body_length, print);
  take(&c->in, whole);
  c->continued = 0;
  return 1;
}

static int push(int fd, struct connection *c) {
  while (c->out.length > 0) {
    ssize_t n = send(fd, c->out.at, c->out.length, MSG_NOSIGNAL);
    if (n < 0) return errno == EAGAIN ? 0 : -1;
    take(&c->out, (size_t)n);
  }
  return c->ended ? -1 : 0;
}

static void serve(int fd) {
  struct connection *c = connections[fd];
  for (;;) {
    ssize_t n = recv(fd, received, RECEIVE, 0);
    if (n < 0 && errno != EAGAIN) return drop(fd);
    if (n < 0) break;
    if (n == 0) {
      c->ended = 1;
      break;
    }
    append(c->is_http ? &c->in : &c->out, received, (size_t)n);
  }
  int state = c->is_http;
  while (state > 0) state = answer_one(c);
  if (state < 0 || push(fd, c) < 0) drop(fd);
}

static int listen_on_any(in_port_t *port) {
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t size = sizeof address;
  if (bind(fd, (struct sockaddr *)&address, size) || listen(fd, 4096) || getsockname(fd, (struct sockaddr *)&address, &size)) {
    perror("echo");
    exit(1);
  }
  *port = ntohs(address.sin_port);
  return fd;
}

int main(void) {
  pattern_prepare();
  in_port_t http_port, tcp_port;
  int one = 1, http = listen_on_any(&http_port), tcp = listen_on_any(&tcp_port), epoll = epoll_create1(0);
  struct epoll_event event = {.events = EPOLLIN, .data.fd = http}, events[256];
  epoll_ctl(epoll, EPOLL_CTL_ADD, http, &event);
  event.data.fd = tcp;
  epoll_ctl(epoll, EPOLL_CTL_ADD, tcp, &event);
  printf("%d %d\n", http_port, tcp_port);
  fflush(stdout);
  for (;;) {
    int count = epoll_wait(epoll, events, 256, -1);
    for (int i = 0; i < count; i++) {
      int fd = events[i].data.fd, accepted;
      if (fd != http && fd != tcp) {
        serve(fd);
        continue;
      }
      while ((accepted = accept4(fd, NULL, NULL, SOCK_NONBLOCK)) >= 0) {
        if (accepted >= MAX_FDS) {
          close(accepted);
          continue;
        }
        setsockopt(accepted, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        connections[accepted] = calloc(1, sizeof **connections);
        if (!connections[accepted]) abort();
        connections[accepted]->is_http = fd == http;
        event = (struct epoll_event){.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, .data.fd = accepted};
        epoll_ctl(epoll, EPOLL_CTL_ADD, accepted, &event);
      }
    }
  }
}
