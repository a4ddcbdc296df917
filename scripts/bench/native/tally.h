// Counts of the load generator: total, and since the last mark.

#pragma once
#include <stdio.h>
#include <string.h>

enum kind { KEEPALIVE, IDLE, POST, PIPELINED, FRESH, STREAM, SHORT, KINDS };
static const char *const kind_names[KINDS] = {"keepalive", "idle", "post", "pipelined", "fresh", "stream", "short"};

// refused, connect: no connection. reset, closed, short: ended unannounced by RST, by FIN, within a response. wrong: unexpected
// bytes. late: no response within the deadline. unannounced: an idle connection ended. unclosed: an announced end did not happen.
// cut: a TCP stream ended too early. again: a repeated request hit an announced end.
enum failure { REFUSED, CONNECT, RESET, CLOSED, SHORTENED, FALSE_BYTES, LATE, UNANNOUNCED, UNCLOSED, CUT, AGAIN, FAILURES };
static const char *const failure_names[FAILURES] = {"refused", "connect", "reset", "closed", "short", "wrong",
                                                    "late", "unannounced", "unclosed", "cut", "again"};

struct tally {
  double since, longest_gap, longest_answer, longest_stall;
  unsigned long done[KINDS], failed[FAILURES], connections, announced, repeated, ended, ended_by_reset, bytes, own_errors;
};

static struct tally in_all, since_mark;
#define COUNT(field, amount) (in_all.field += (amount), since_mark.field += (amount))
#define LONGEST(field, seconds) tally_longest(&in_all.field, &since_mark.field, seconds)

static inline void tally_longest(double *all, double *recent, double seconds) {
  if (seconds > *all) *all = seconds;
  if (seconds > *recent) *recent = seconds;
}

static void tally_print(const char *event, const struct tally *t, double now) {
  unsigned long requests = 0, failures = 0;
  for (int kind = 0; kind < STREAM; kind++) requests += t->done[kind];
  for (int failure = 0; failure < FAILURES; failure++) failures += t->failed[failure];
  printf("{\"event\":\"%s\",\"seconds\":%.3f,\"requests\":%lu,\"failures\":%lu", event, now - t->since, requests, failures);
  printf(",\"longestGapMs\":%.2f,\"longestAnswerMs\":%.2f,\"longestStallMs\":%.2f", t->longest_gap * 1e3,
         t->longest_answer * 1e3, t->longest_stall * 1e3);
  printf(",\"connections\":%lu,\"announced\":%lu,\"repeated\":%lu", t->connections, t->announced, t->repeated);
  printf(",\"ended\":%lu,\"endedByReset\":%lu,\"streamBytes\":%lu", t->ended, t->ended_by_reset, t->bytes);
  printf(",\"ownErrors\":%lu,\"done\":{", t->own_errors);
  for (int kind = 0; kind < KINDS; kind++) printf("%s\"%s\":%lu", kind ? "," : "", kind_names[kind], t->done[kind]);
  printf("},\"failed\":{");
  for (int failure = 0; failure < FAILURES; failure++)
    printf("%s\"%s\":%lu", failure ? "," : "", failure_names[failure], t->failed[failure]);
  printf("}}\n");
  fflush(stdout);
}
