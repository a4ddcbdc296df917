// Bytes that both ends of a connection can predict, and a fingerprint for bytes that only one of them has.

#pragma once
#include <stdint.h>
#include <string.h>

enum { PATTERN_PERIOD = 65521, PATTERN_MAX = 1 << 17 };

// The pattern starts at any position in its period, and has PATTERN_MAX bytes from there.
static unsigned char pattern_bytes[PATTERN_PERIOD + PATTERN_MAX];

static void pattern_prepare(void) {
  uint64_t state = 88172645463325252u;
  for (size_t i = 0; i < sizeof pattern_bytes; i++) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    pattern_bytes[i] = i < PATTERN_PERIOD ? (unsigned char)(state >> 32) : pattern_bytes[i - PATTERN_PERIOD];
  }
}

// Returns up to PATTERN_MAX bytes for this position.
static inline const unsigned char *pattern_at(uint64_t position) {
  return pattern_bytes + position % PATTERN_PERIOD;
}

// FNV-1a.
static inline uint64_t fingerprint(uint64_t so_far, const void *bytes, size_t length) {
  const unsigned char *at = bytes;
  while (length-- > 0) so_far = (so_far ^ *at++) * 1099511628211u;
  return so_far;
}
#define FINGERPRINT_START 14695981039346656037u
