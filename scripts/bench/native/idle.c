// Holds idle keep-alive connections open, each after one request.
//
//   idle PORT COUNT
//
// Prints "open COUNT" when all are open. Exits at end of input, with resets that leave no TIME_WAIT.

#define _GNU_SOURCE
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static const char request[] = "GET /small HTTP/1.1\r\nHost: localhost\r\nUser-Agent: curl/8.5.0\r\nAccept: */*\r\n\r\n";
enum { BODY = 128 };

static int open_one(in_port_t port) {
  int fd = socket(AF_INET, SOCK_STREAM, 0);
  struct linger reset = {1, 0};
  struct timeval deadline = {10, 0};
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address)) return -1;
  setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &deadline, sizeof deadline);
  if (send(fd, request, sizeof request - 1, MSG_NOSIGNAL) != (ssize_t)sizeof request - 1) return -1;
  char answer[4096];
  size_t length = 0;
  for (;;) {
    ssize_t n = recv(fd, answer + length, sizeof answer - 1 - length, 0);
    if (n <= 0) return -1;
    length += (size_t)n;
    answer[length] = 0;
    char *end = strstr(answer, "\r\n\r\n");
    if (end && length >= (size_t)(end + 4 - answer) + BODY) return fd;
  }
}

int main(int argc, char **argv) {
  if (argc != 3) return 2;
  int count = atoi(argv[2]);
  for (int i = 0; i < count; i++) {
    if (open_one((in_port_t)atoi(argv[1])) < 0) {
      fprintf(stderr, "idle: connection %d of %d: ", i + 1, count);
      perror(NULL);
      return 1;
    }
  }
  printf("open %d\n", count);
  fflush(stdout);
  char byte;
  while (read(0, &byte, 1) > 0) continue;
  return 0;
}
