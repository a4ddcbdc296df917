// Clients of a proxy in front of echo.c that detect each lost, duplicated, truncated or changed response, each refused or reset
// connection, and how long there was no response.
//
//   clients HTTP-PORT TCP-PORT [name=value …]
//
//   keepalive=16 idle=8 post=8 pipelined=4 fresh=8 stream=4 short=2   how many clients of each kind
//   rate=N       maximum requests per second (0: as fast as responses arrive)
//   deadline=S   seconds after which a response counts as lost (default 60)
//   cut=S        a TCP stream that ends before this age has failed; later ends are counted separately (default: none may end)
//
// For each line on standard input, prints the counts since the last one as JSON. At end of input, finishes requests in flight,
// prints the totals and exits. A request after an announced close on the same connection is repeated once.

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include "answer.h"
#include "tally.h"

enum { PIPELINE = 8, OUT = 1 << 17, BLOCK = 8192, WINDOW = 4 * BLOCK, SHORT_LENGTH = 1 << 16, MAX_CLIENTS = 4096 };
enum { PRINTED_FAILURES = 100 };
static const double BLOCK_PAUSE = 0.005, IDLE_PAUSE = 0.25, SHORT_PAUSE = 0.02, CLOSE_PATIENCE = 20, OWN_PAUSE = 0.1;

enum state { GONE, CONNECTING, OPEN, CLOSING };  // CLOSING: the close was announced and is pending

struct request {
  uint64_t id;
  size_t body_length;
  int expects;  // waits for 100 before the body
};

struct client {
  enum kind kind;
  enum state state;
  int fd, watches_out, repeats, asked_to_close;
  double opened, since, due;  // since: last progress of a request in flight
  unsigned long answers;      // responses on this connection
  uint16_t port;
  struct request requests[PIPELINE];
  int count, answered;  // requests in flight, and how many of them are answered
  struct answer answer;
  uint64_t seed, sent, received;  // of a stream
  char out[OUT];
  size_t out_at, out_length, held;  // held: bytes at the end that wait for 100
};

static struct client *clients[MAX_CLIENTS];
static int client_count, epoll, stopping;
static in_port_t http_port, tcp_port;
static double now, begun, last_answer, tokens, rate, deadline = 60, cut = INFINITY;
static uint64_t next_id = 1;
static unsigned long printed;
static char received[1 << 17];

static double clock_seconds(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static int is_stream(const struct client *c) { return c->kind >= STREAM; }

static int under_way(const struct client *c) {
  if (is_stream(c)) return c->state != GONE && (c->kind == SHORT || c->received < c->sent);
  return c->answered < c->count;
}

static void hang_up(struct client *c) {
  close(c->fd);
  c->fd = -1;
  c->state = GONE;
  c->out_at = c->out_length = c->held = 0;
}

// Ends the connection, and abandons its requests in flight.
static void fail(struct client *c, enum failure failure, int error) {
  COUNT(failed[failure], 1);
  if (printed++ < PRINTED_FAILURES) {
    printf("{\"event\":\"failure\",\"failure\":\"%s\",\"client\":\"%s\",\"atSeconds\":%.3f,\"ageSeconds\":%.3f,\"answersBefore\":%lu"
           ",\"underWay\":%d,\"answerBegun\":%d,\"error\":\"%s\",\"localPort\":%d,\"sent\":%zu,\"unsent\":%zu,\"received\":%" PRIu64
           ",\"wrong\":\"%s\"}\n",
           failure_names[failure], kind_names[c->kind], now - begun, now - c->opened, c->answers, c->count - c->answered,
           answer_begun(&c->answer), error ? strerrorname_np(error) : "", c->port, c->out_at, c->out_length - c->out_at,
           c->received, c->answer.wrong ? c->answer.wrong : "");
    fflush(stdout);
  }
  hang_up(c);
  c->count = c->answered = c->repeats = 0;
  c->due = now;
}

static void watch(struct client *c, int out) {
  if (c->watches_out == out) return;
  c->watches_out = out;
  struct epoll_event event = {.events = EPOLLIN | EPOLLRDHUP | (out ? EPOLLOUT : 0), .data.ptr = c};
  epoll_ctl(epoll, EPOLL_CTL_MOD, c->fd, &event);
}

// Sends bytes that are not held. Errors are reported by the next recv, after responses that may still be unread.
static void push(struct client *c) {
  size_t end = c->out_length - c->held;
  while (c->out_at < end) {
    ssize_t n = send(c->fd, c->out + c->out_at, end - c->out_at, MSG_NOSIGNAL);
    if (n < 0) return watch(c, errno == EAGAIN);
    c->out_at += (size_t)n;
    c->since = now;
  }
  watch(c, 0);
  if (c->out_at == c->out_length) c->out_at = c->out_length = 0;
  if (c->kind == SHORT && c->sent == SHORT_LENGTH) shutdown(c->fd, SHUT_WR);
}

static void put(struct client *c, const void *bytes, size_t length) {
  if (c->out_length + length > OUT) {
    memmove(c->out, c->out + c->out_at, c->out_length - c->out_at);
    c->out_length -= c->out_at;
    c->out_at = 0;
  }
  if (c->out_length + length > OUT) abort();
  memcpy(c->out + c->out_length, bytes, length);
  c->out_length += length;
}

static size_t pad_of(uint64_t id) { return id % 16 == 0 ? 65536 : id % 3 * 200; }

static void write_request(struct client *c, struct request *r) {
  char head[256];
  int length = snprintf(head, sizeof head, "%s /%" PRIu64 "?pad=%zu HTTP/1.1\r\nHost: clients\r\n%s",
                        c->kind == POST ? "POST" : "GET", r->id, pad_of(r->id), c->asked_to_close ? "Connection: close\r\n" : "");
  put(c, head, (size_t)length);
  if (c->kind == POST) {
    int is_chunked = r->id & 1;
    r->body_length = r->id % 8 == 0 ? 49152 : 512 + r->id % 512;
    r->expects = r->id % 5 == 0;
    if (r->expects) put(c, "Expect: 100-continue\r\n", 22);
    length = is_chunked ? snprintf(head, sizeof head, "Transfer-Encoding: chunked\r\n\r\n")
                        : snprintf(head, sizeof head, "Content-Length: %zu\r\n\r\n", r->body_length);
    put(c, head, (size_t)length);
    size_t body_start = c->out_length;
    for (size_t at = 0; at < r->body_length;) {
      size_t piece = is_chunked && r->body_length - at > 700 ? 700 : r->body_length - at;
      if (is_chunked) put(c, head, (size_t)snprintf(head, sizeof head, "%zx\r\n", piece));
      put(c, pattern_at(r->id) + at, piece);
      if (is_chunked) put(c, "\r\n", 2);
      at += piece;
    }
    if (is_chunked) put(c, "0\r\n\r\n", 5);
    c->held = r->expects ? c->out_length - body_start : 0;
  } else {
    put(c, "\r\n", 2);
    r->body_length = 0;
  }
}

static struct expected expect(const struct request *r) {
  struct expected e = {.pad = pad_of(r->id), .seed = r->id};
  uint64_t print = fingerprint(FINGERPRINT_START, pattern_at(r->id), r->body_length);
  e.account_length = (size_t)snprintf(e.account, sizeof e.account, "/%" PRIu64 "?pad=%zu %zu %016" PRIx64 "\n", r->id, e.pad,
                                      r->body_length, print);
  return e;
}

static void write_blocks(struct client *c) {
  size_t block = c->kind == SHORT ? SHORT_LENGTH : BLOCK;
  put(c, pattern_at(c->seed + c->sent), block);
  c->sent += block;
  c->due = now + BLOCK_PAUSE;
}

static void open_connection(struct client *c) {
  c->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(is_stream(c) ? tcp_port : http_port)};
  socklen_t size = sizeof address;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  int one = 1;
  c->state = CONNECTING;
  c->opened = c->since = now;
  c->answers = c->sent = c->received = 0;
  c->out_at = c->out_length = c->held = 0;
  c->port = 0;
  memset(&c->answer, 0, sizeof c->answer);
  if (c->fd < 0 || (connect(c->fd, (struct sockaddr *)&address, size) && errno != EINPROGRESS)) {
    if (c->fd >= 0 && errno == ECONNREFUSED) return fail(c, REFUSED, errno);
    // Descriptors or ports are short on this side, which is not a failure of the proxy.
    COUNT(own_errors, 1);
    hang_up(c);
    c->due = now + OWN_PAUSE;
    return;
  }
  setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  if (!getsockname(c->fd, (struct sockaddr *)&address, &size)) c->port = ntohs(address.sin_port);
  struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP, .data.ptr = c};
  c->watches_out = 1;
  epoll_ctl(epoll, EPOLL_CTL_ADD, c->fd, &event);
  COUNT(connections, 1);
}

// Starts the client's next action: new or repeated requests, or the next piece of a stream.
static void begin(struct client *c) {
  if (!is_stream(c) && c->repeats == 0) {
    c->count = c->kind == PIPELINED ? PIPELINE : 1;
    c->answered = 0;
    for (int i = 0; i < c->count; i++) c->requests[i] = (struct request){.id = next_id++};
    c->asked_to_close = c->kind == FRESH && c->requests[0].id % 2;
  }
  tokens -= is_stream(c) ? 0 : c->count;
  if (c->state == GONE) {
    if (is_stream(c)) c->seed = next_id++;
    open_connection(c);
    if (c->state == GONE) {
      if (!is_stream(c) && c->count > c->answered) c->repeats = c->count - c->answered;
      return;
    }
  }
  c->since = now;
  if (is_stream(c)) write_blocks(c);
  else
    for (int i = c->answered; i < c->count; i++) write_request(c, &c->requests[i]);
  if (c->state == OPEN) push(c);
}

static int may_begin(const struct client *c) {
  if (now < c->due || c->state == CONNECTING || c->state == CLOSING) return 0;
  if (c->repeats > 0) return c->state == GONE;
  if (stopping) return 0;
  if (c->kind == SHORT) return c->state == GONE;
  if (c->kind == STREAM) return c->sent - c->received + BLOCK <= WINDOW || c->state == GONE;
  // Pipelined requests are charged afterwards: a client that had to wait for enough budget would never be served before the
  // others.
  return c->answered == c->count && (rate == 0 || tokens >= 1);
}

static void answered(struct client *c) {
  LONGEST(longest_gap, now - last_answer);
  LONGEST(longest_answer, now - c->since);
  last_answer = now;
  COUNT(done[c->kind], 1);
  c->answers++;
  c->answered++;
  if (c->answer.closes) {
    c->state = CLOSING;
    c->since = now;
    COUNT(announced, !c->asked_to_close);
    return;
  }
  if (c->answered < c->count) return;
  c->repeats = 0;
  c->due = now + (c->kind == IDLE ? IDLE_PAUSE : 0);
  if (c->kind == FRESH) hang_up(c);
}

// Handles received bytes. Returns 0 when the connection no longer exists.
static int take(struct client *c, const char *at, size_t left) {
  c->since = is_stream(c) ? now : c->since;
  if (is_stream(c)) {
    COUNT(bytes, left);
    if (c->received + left > c->sent || memcmp(at, pattern_at(c->seed + c->received), left)) return fail(c, FALSE_BYTES, 0), 0;
    if ((c->received + left) / BLOCK > c->received / BLOCK && c->kind == STREAM) COUNT(done[STREAM], 1);
    c->received += left;
    return 1;
  }
  while (left > 0) {
    if (c->state == CLOSING || c->answered == c->count) {
      c->answer.wrong = "bytes after the last answer";
      return fail(c, FALSE_BYTES, 0), 0;
    }
    struct expected e = expect(&c->requests[c->answered]);
    switch (answer_read(&c->answer, &e, &at, &left)) {
      case WRONG: return fail(c, FALSE_BYTES, 0), 0;
      case CONTINUE: c->held = 0, push(c); break;
      case DONE: answered(c); break;
      case MORE: break;
    }
    if (c->state == GONE) return 0;
  }
  return 1;
}

static void ended(struct client *c, int error) {
  if (is_stream(c)) {
    if (c->kind == SHORT && !error && c->received == SHORT_LENGTH) {
      COUNT(done[SHORT], 1);
    } else if (now - c->opened < cut && !(stopping && c->kind == STREAM && !under_way(c))) {
      return fail(c, CUT, error);
    } else {
      COUNT(ended, 1);
      COUNT(ended_by_reset, error != 0);
    }
    hang_up(c);
    c->due = now + (c->kind == SHORT ? SHORT_PAUSE : 0);
  } else if (c->state == CLOSING) {
    int left = c->count - c->answered;
    if (left > 0 && c->repeats > 0) return fail(c, AGAIN, error);
    if (left == 0 && error) return fail(c, RESET, error);
    hang_up(c);
    COUNT(repeated, left);
    c->repeats = left;
    c->due = now;
  } else if (!under_way(c)) {
    fail(c, UNANNOUNCED, error);
  } else {
    fail(c, error ? RESET : answer_begun(&c->answer) ? SHORTENED : CLOSED, error);
  }
}

static void receive(struct client *c) {
  for (;;) {
    ssize_t n = recv(c->fd, received, sizeof received, 0);
    if (n < 0 && errno == EAGAIN) return;
    if (n <= 0) return ended(c, n < 0 ? errno : 0);
    if (!take(c, received, (size_t)n)) return;
    if ((size_t)n < sizeof received) return;
  }
}

static void handle(struct client *c, uint32_t events) {
  if (c->state == GONE) return;
  if (c->state == CONNECTING) {
    int error = 0;
    socklen_t size = sizeof error;
    getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &error, &size);
    if (error) return fail(c, error == ECONNREFUSED ? REFUSED : CONNECT, error);
    c->state = OPEN;
  }
  if (events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) receive(c);
  if (c->state == OPEN && events & EPOLLOUT) push(c);
}

// Checks deadlines, starts due actions, and at the end closes idle connections. Returns the number of remaining clients.
static int turn(int from) {
  int left = 0;
  for (int i = 0; i < client_count; i++) {
    struct client *c = clients[(from + i) % client_count];
    if (c->state == CLOSING && now - c->since > CLOSE_PATIENCE) fail(c, UNCLOSED, 0);
    else if (c->state == CONNECTING && now - c->opened > deadline) fail(c, CONNECT, ETIMEDOUT);
    else if (c->state == OPEN && under_way(c) && now - c->since > deadline) fail(c, LATE, 0);
    if (may_begin(c)) begin(c);
    if (stopping && c->state == OPEN && !under_way(c)) hang_up(c);
    left += c->state != GONE || c->repeats > 0;
  }
  return left;
}

static void command(void) {
  char text[256];
  ssize_t n = read(0, text, sizeof text);
  if (n <= 0) stopping = 1, epoll_ctl(epoll, EPOLL_CTL_DEL, 0, NULL);
  for (ssize_t i = 0; i < n; i++) {
    if (text[i] != '\n') continue;
    LONGEST(longest_gap, now - last_answer);
    tally_print("mark", &since_mark, now);
    memset(&since_mark, 0, sizeof since_mark);
    since_mark.since = now;
  }
}

static void parse(int argc, char **argv) {
  int counts[KINDS] = {16, 8, 8, 4, 8, 4, 2};
  if (argc < 3) exit(2);
  http_port = (in_port_t)atoi(argv[1]);
  tcp_port = (in_port_t)atoi(argv[2]);
  for (int i = 3; i < argc; i++) {
    char *value = strchr(argv[i], '=');
    if (!value) exit(2);
    *value++ = 0;
    int kind = 0;
    while (kind < KINDS && strcmp(argv[i], kind_names[kind])) kind++;
    if (kind < KINDS) counts[kind] = atoi(value);
    else if (!strcmp(argv[i], "rate")) rate = atof(value);
    else if (!strcmp(argv[i], "deadline")) deadline = atof(value);
    else if (!strcmp(argv[i], "cut")) cut = atof(value);
    else exit(2);
  }
  for (int kind = 0; kind < KINDS; kind++) {
    for (int i = 0; i < counts[kind] && client_count < MAX_CLIENTS; i++) {
      struct client *c = clients[client_count++] = calloc(1, sizeof **clients);
      if (!c) abort();
      c->kind = (enum kind)kind;
      c->fd = -1;
    }
  }
  if (client_count == 0) exit(2);
}

int main(int argc, char **argv) {
  parse(argc, argv);
  pattern_prepare();
  epoll = epoll_create1(0);
  struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL}, events[256];
  if (epoll_ctl(epoll, EPOLL_CTL_ADD, 0, &event)) {
    perror("clients: standard input must be a pipe or a terminal");
    return 1;
  }
  now = begun = last_answer = in_all.since = since_mark.since = clock_seconds();
  for (int from = 0; turn(from) > 0 || !stopping; from = (from + 1) % client_count) {
    int count = epoll_wait(epoll, events, 256, 1);
    double before = now;
    now = clock_seconds();
    LONGEST(longest_stall, now - before);
    // After a pause of this process, the burst is limited to a fiftieth of a second.
    tokens = fmin(tokens + rate * (now - before), fmax(rate / 50, PIPELINE));
    for (int i = 0; i < count; i++) {
      if (events[i].data.ptr == NULL) command();
      else handle(events[i].data.ptr, events[i].events);
    }
  }
  tally_print("end", &in_all, now);
  return 0;
}
