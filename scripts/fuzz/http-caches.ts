// Mutated fields of requests and responses that a cache reads: cache-control, dates, ranges. They run in this process. No input may cause an
// exception or take long, and what a range selects is within the body.

import type { Random } from '../../src/common/random.js';
import { byteRange } from '../../src/extensions/filters/http/cache/byte-range.js';
import {
  httpTime,
  requestDirectives,
  responseDirectives,
} from '../../src/extensions/filters/http/cache/cache-control.js';
import { mutateBytes } from './mutation.js';
import { Finding, type Scope } from './scope.js';

/** Inputs between two looks at the clock. */
const INPUTS_PER_STEP = 1000;
const MAX_INPUT_MS = 1000;
const VALUES = [
  'max-age=100, s-maxage="50", must-revalidate',
  'no-cache, no-store, private="a", max-stale, min-fresh=9',
  'Sun, 06 Nov 1994 08:49:37 GMT',
  'Sunday, 06-Nov-94 08:49:37 GMT',
  'Sun Nov  6 08:49:37 1994',
  'bytes=0-499',
  'bytes=-500',
  'bytes=9500-',
].map((text) => Buffer.from(text));
const TOKENS = ['=', ',', '"', '-', '99999999999999999999', 'GMT', ' '.repeat(1024), ',='.repeat(512)].map((text) =>
  Buffer.from(text),
);

/** Throws a Finding when an input causes an exception, or is not read as it must be. Returns a summary. */
export async function fuzzHttpCaches(_scope: Scope, random: Random, durationMs: number): Promise<string> {
  const end = performance.now() + durationMs;
  let inputs = 0;
  while (performance.now() < end) {
    for (let left = INPUTS_PER_STEP; left > 0; left--, inputs++)
      attempt(mutateBytes(random, VALUES, TOKENS).toString('latin1'), random.below(20_000));
    await new Promise(setImmediate);
  }
  return `${inputs} inputs; no defect`;
}

function attempt(value: string, length: number): void {
  const begin = performance.now();
  try {
    requestDirectives(value, value);
    const { maxAge } = responseDirectives(value);
    if (maxAge !== undefined && !Number.isSafeInteger(maxAge)) throw new Error(`max-age is ${maxAge}`);
    const time = httpTime(value);
    if (time !== undefined && !Number.isFinite(time)) throw new Error(`the time is ${time}`);
    const range = byteRange(value, length);
    if (typeof range === 'object' && !(range.start >= 0 && range.start < range.end && range.end <= length))
      throw new Error(`the range is ${range.start}-${range.end} of ${length}`);
  } catch (error) {
    throw new Finding(`${JSON.stringify(value)} of ${length}: ${error}`);
  }
  if (performance.now() - begin > MAX_INPUT_MS) throw new Finding(`${JSON.stringify(value)} takes too long`);
}
