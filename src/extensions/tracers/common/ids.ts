// IDs of traces and spans, as lower-case hexadecimal.

import type { Random } from '../../sdk.js';

const ZERO = '0'.repeat(16);

/** Returns a random ID of 8 bytes, which is not 0. */
export function newSpanId(random: Random): string {
  const id = word(random) + word(random);
  return id === ZERO ? newSpanId(random) : id;
}

/** Returns a random ID of 16 bytes, which is not 0. */
export function newTraceId(random: Random): string {
  return newSpanId(random) + newSpanId(random);
}

function word(random: Random): string {
  return random.nextUint32().toString(16).padStart(8, '0');
}
