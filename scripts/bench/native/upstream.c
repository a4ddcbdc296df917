// A fast HTTP/1.1 origin with fixed responses, so that a benchmark measures the proxy in front of it and not its upstream.
//
//   upstream PORT
//
//   /small  128 bytes      /10k  10 KiB      /100m  100 MB
//
// Request bodies (Content-Length or chunked) are read and discarded before the response. One thread, epoll, edge-triggered.

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

enum { MAX_FDS = 1 << 17, HEAD_MAX = 16384, RECEIVE = 1 << 18, FILLER = 1 << 18 };
enum { SMALL = 128, TEN_K = 10240, HUNDRED_M = 100000000 };

// The parsing phase of a connection.
enum phase { HEAD, LENGTH_BODY, CHUNK_SIZE, CHUNK_DATA, CHUNK_END, TRAILERS };

struct answer {
  char head[256];
  size_t head_length, body_length;
  char *whole;  // head and body in one piece, for one send
};

struct connection {
  enum phase phase;
  char *partial;          // an incomplete head
  size_t partial_length;
  size_t body_left;       // of the request
  size_t line_length;     // of the chunk-size or trailer line being read
  const struct answer *answer;
  size_t sent, to_send;   // of the response
};

static struct connection *connections[MAX_FDS];
static char received[RECEIVE], filler[FILLER];
static struct answer small, ten_k, hundred_m;

static void prepare(struct answer *answer, size_t body_length) {
  answer->head_length = (size_t)sprintf(answer->head,
      "HTTP/1.1 200 OK\r\nServer: upstream\r\nDate: Fri, 20 Nov 2026 08:43:06 GMT\r\n"
      "Content-Type: text/plain\r\nContent-Length: %zu\r\n\r\n", body_length);
  answer->body_length = body_length;
  if (body_length <= TEN_K) {
    answer->whole = malloc(answer->head_length + body_length);
    memcpy(answer->whole, answer->head, answer->head_length);
    memset(answer->whole + answer->head_length, 'x', body_length);
  }
}

static void drop(int fd) {
  free(connections[fd]->partial);
  free(connections[fd]);
  connections[fd] = NULL;
  close(fd);
}

// Sends the rest of the response. Returns 0: done, or to be continued when writable; -1: the connection is closed.
static int push(int fd, struct connection *c) {
  while (c->sent < c->to_send) {
    const struct answer *a = c->answer;
    const char *from;
    size_t length;
    if (a->whole) {
      from = a->whole + c->sent;
      length = c->to_send - c->sent;
    } else if (c->sent < a->head_length) {
      from = a->head + c->sent;
      length = a->head_length - c->sent;
    } else {
      from = filler;
      length = c->to_send - c->sent;
      if (length > FILLER) length = FILLER;
    }
    ssize_t n = send(fd, from, length, MSG_NOSIGNAL);
    if (n < 0) return errno == EAGAIN ? 0 : -1;
    c->sent += (size_t)n;
  }
  return 0;
}

static int respond(int fd, struct connection *c) {
  c->phase = HEAD;
  c->sent = 0;
  c->to_send = c->answer->head_length + c->answer->body_length;
  return push(fd, c);
}

// Determines the response to a request line, and the framing of its body.
static int begin(int fd, struct connection *c, const char *head, size_t length) {
  const char *path = memchr(head, '/', length < 16 ? length : 16);
  c->answer = &small;
  if (path && !strncmp(path, "/10k", 4)) c->answer = &ten_k;
  if (path && !strncmp(path, "/100m", 5)) c->answer = &hundred_m;
  if (head[0] != 'P') return respond(fd, c);
  char text[HEAD_MAX + 1];
  memcpy(text, head, length);
  text[length] = 0;
  const char *field;
  if ((field = strcasestr(text, "\r\ncontent-length:"))) {
    c->body_left = strtoull(field + 17, NULL, 10);
    if (c->body_left == 0) return respond(fd, c);
    c->phase = LENGTH_BODY;
  } else if (strcasestr(text, "\r\ntransfer-encoding:")) {
    c->phase = CHUNK_SIZE;
    c->body_left = c->line_length = 0;
  } else {
    return respond(fd, c);
  }
  return 0;
}

// Parses the bytes of one recv.
static int consume(int fd, struct connection *c, const char *at, size_t left) {
  while (left > 0) {
    if (c->phase == HEAD) {
      const char *head = at;
      size_t length = left, before = c->partial_length;
      if (before > 0) {
        if (before + left > HEAD_MAX) length = HEAD_MAX - before;
        memcpy(c->partial + before, at, length);
        head = c->partial;
        length += before;
      }
      const char *end = memmem(head, length, "\r\n\r\n", 4);
      if (!end) {
        if (length >= HEAD_MAX) return -1;
        if (!c->partial) c->partial = malloc(HEAD_MAX);
        if (before == 0) memcpy(c->partial, at, left);
        c->partial_length = length;
        return 0;
      }
      size_t head_length = (size_t)(end + 4 - head);
      at += head_length - before;
      left -= head_length - before;
      c->partial_length = 0;
      if (begin(fd, c, head, head_length) < 0) return -1;
    } else if (c->phase == LENGTH_BODY || c->phase == CHUNK_DATA) {
      size_t take = left < c->body_left ? left : c->body_left;
      at += take;
      left -= take;
      c->body_left -= take;
      if (c->body_left > 0) return 0;
      if (c->phase == CHUNK_DATA) c->phase = CHUNK_END;
      else if (respond(fd, c) < 0) return -1;
    } else {
      char byte = *at++;
      left--;
      if (c->phase == CHUNK_END) {
        if (byte == '\n') c->phase = CHUNK_SIZE;
      } else if (c->phase == TRAILERS) {
        if (byte == '\n' && c->line_length == 0) {
          if (respond(fd, c) < 0) return -1;
        } else if (byte == '\n') {
          c->line_length = 0;
        } else if (byte != '\r') {
          c->line_length++;
        }
      } else if (byte == '\n') {
        c->line_length = 0;
        c->phase = c->body_left > 0 ? CHUNK_DATA : TRAILERS;
      } else if (byte != '\r') {
        int digit = byte >= 'a' ? byte - 'a' + 10 : byte >= 'A' ? byte - 'A' + 10 : byte - '0';
        c->body_left = c->body_left * 16 + (size_t)digit;
      }
    }
  }
  return 0;
}

static void serve(int fd) {
  struct connection *c = connections[fd];
  if (push(fd, c) < 0) return drop(fd);
  for (;;) {
    ssize_t n = recv(fd, received, RECEIVE, 0);
    if (n == 0 || (n < 0 && errno != EAGAIN)) return drop(fd);
    if (n < 0) return;
    if (consume(fd, c, received, (size_t)n) < 0) return drop(fd);
    if (n < RECEIVE) return;
  }
}

int main(int argc, char **argv) {
  if (argc != 2) return 2;
  prepare(&small, SMALL);
  prepare(&ten_k, TEN_K);
  prepare(&hundred_m, HUNDRED_M);
  memset(filler, 'x', FILLER);
  int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), one = 1;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((in_port_t)atoi(argv[1]))};
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (bind(listener, (struct sockaddr *)&address, sizeof address) || listen(listener, 4096)) {
    perror("upstream");
    return 1;
  }
  int epoll = epoll_create1(0);
  struct epoll_event event = {.events = EPOLLIN, .data.fd = listener}, events[512];
  epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &event);
  for (;;) {
    int count = epoll_wait(epoll, events, 512, -1);
    for (int i = 0; i < count; i++) {
      int fd = events[i].data.fd;
      if (fd != listener) {
        serve(fd);
        continue;
      }
      int accepted;
      while ((accepted = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) >= 0) {
        if (accepted >= MAX_FDS) {
          close(accepted);
          continue;
        }
        setsockopt(accepted, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        connections[accepted] = calloc(1, sizeof **connections);
        event = (struct epoll_event){.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, .data.fd = accepted};
        epoll_ctl(epoll, EPOLL_CTL_ADD, accepted, &event);
      }
    }
  }
}
