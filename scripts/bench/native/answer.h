// Parses an HTTP/1.1 response of echo.c piece by piece, and compares it with the expected one.

#pragma once
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "pattern.h"

struct expected {
  char account[128];
  size_t account_length, pad;
  uint64_t seed;  // position of the padding in the pattern
};

struct answer {
  char head[4096];
  size_t head_length, body_at, body_length;
  int in_body, closes;
  const char *wrong;  // the first mismatch
};

enum reading { MORE, CONTINUE, DONE, WRONG };

static inline int answer_begun(const struct answer *a) { return a->in_body || a->head_length > 0; }

static enum reading answer_head(struct answer *a, const struct expected *e) {
  char *head = a->head;
  if (!strncmp(head, "HTTP/1.1 100 ", 13)) {
    a->head_length = 0;
    return CONTINUE;
  }
  if (strncmp(head, "HTTP/1.1 200 ", 13)) {
    head[strcspn(head, "\r")] = 0;
    a->wrong = head;
    return WRONG;
  }
  const char *length = strcasestr(head, "\r\ncontent-length:");
  if (!length || strtoull(length + 17, NULL, 10) != e->account_length + e->pad) {
    a->wrong = "content-length";
    return WRONG;
  }
  const char *connection = strcasestr(head, "\r\nconnection:");
  a->closes = connection && !strncasecmp(connection + 13 + strspn(connection + 13, " "), "close", 5);
  a->in_body = 1;
  a->body_at = 0;
  a->body_length = e->account_length + e->pad;
  return MORE;
}

// Consumes bytes up to the end of one response, interim or final, and advances `at` and `left`.
static enum reading answer_read(struct answer *a, const struct expected *e, const char **at, size_t *left) {
  while (*left > 0 && !a->in_body) {
    if (a->head_length == sizeof a->head - 1) {
      a->wrong = "a head without an end";
      return WRONG;
    }
    a->head[a->head_length++] = **at;
    ++*at, --*left;
    if (a->head_length < 4 || memcmp(a->head + a->head_length - 4, "\r\n\r\n", 4)) continue;
    a->head[a->head_length] = 0;
    enum reading reading = answer_head(a, e);
    if (reading != MORE) return reading;
  }
  while (*left > 0 && a->body_at < a->body_length) {
    int is_account = a->body_at < e->account_length;
    size_t end = is_account ? e->account_length : a->body_length, take = end - a->body_at;
    if (take > *left) take = *left;
    const void *must = is_account ? (const void *)(e->account + a->body_at)
                                  : pattern_at(e->seed) + (a->body_at - e->account_length);
    if (memcmp(*at, must, take)) {
      a->wrong = is_account ? "account of the request" : "padding";
      return WRONG;
    }
    *at += take, *left -= take, a->body_at += take;
  }
  if (!a->in_body || a->body_at < a->body_length) return MORE;
  a->in_body = 0;
  a->head_length = 0;
  return DONE;
}
