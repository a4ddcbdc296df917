// Mutated cookies and headers with the address of a host, as clients of stateful_session send them. They run in this process. No input may cause
// an exception or give an address longer than the input, and an address that is written is read again.

import type { Random } from '../../src/common/random.js';
import {
  addressOfCookie,
  addressOfHeader,
  cookieOf,
  headerOf,
} from '../../src/extensions/filters/http/stateful-session/session-address.js';
import { mutateBytes } from './mutation.js';
import { Finding, type Scope } from './scope.js';

/** Inputs between two looks at the clock. */
const INPUTS_PER_STEP = 1000;
const MAX_INPUT_MS = 1000;
const NOW_S = 1_800_000_000;
/** Longer than the address of any host. */
const MAX_ADDRESS = 200;

const MESSAGES = [cookieOf('127.0.0.1:80', 0), cookieOf('[2001:db8::1]:443', NOW_S + 1), cookieOf('/run/socket', 5)];
const VALUES = [...MESSAGES, headerOf('127.0.0.1:80')].map((text) => Buffer.from(text));
const CONTENTS = VALUES.map((value) => Buffer.from(value.toString(), 'base64'));
const PADS = ['=', '==', '"', ';', '\n', '-', '_', 'A'.repeat(1024)].map((text) => Buffer.from(text));
/** Tags of fields, a length that is too large, and a number that is too long. */
const TOKENS = [
  [0x0a],
  [0x10],
  [0x0b],
  [0x00],
  [0x29],
  [0x35],
  [0x0a, 0xff, 0x7f],
  new Array<number>(11).fill(0xff),
].map((bytes) => Buffer.from(bytes));

/** Throws a Finding when an input causes an exception, or is not read as it must be. Returns a summary. */
export async function fuzzSessionCookies(_scope: Scope, random: Random, durationMs: number): Promise<string> {
  const end = performance.now() + durationMs;
  let inputs = 0;
  let read = 0;
  while (performance.now() < end) {
    for (let left = INPUTS_PER_STEP; left > 0; left--, inputs++) {
      const content = mutateBytes(random, CONTENTS, TOKENS);
      const isText = random.below(2) === 0;
      const value = isText ? mutateBytes(random, VALUES, PADS).toString('latin1') : content.toString('base64');
      if (attempt(value)) read++;
    }
    await new Promise(setImmediate);
  }
  return `${inputs} inputs (${read} with an address); no defect`;
}

/** Returns whether the value has an address. */
function attempt(value: string): boolean {
  const begin = performance.now();
  try {
    const found = [addressOfHeader(value), addressOfCookie(value, NOW_S)];
    for (const address of found) {
      if (address.length > value.length) throw new Error('the address is longer than the value');
      if (address.length > MAX_ADDRESS) continue;
      if (addressOfHeader(headerOf(address)) !== address) throw new Error('as a header it is read as another address');
      if (addressOfCookie(cookieOf(address, 0), NOW_S) !== address)
        throw new Error('as a cookie it is read as another address');
    }
    const ms = performance.now() - begin;
    if (ms > MAX_INPUT_MS) throw new Error(`it took ${Math.round(ms)} ms`);
    return found.some((address) => address !== '');
  } catch (error) {
    const text = error instanceof Error ? error.stack : String(error);
    throw new Finding(`${text}\n\nThe value:\n${JSON.stringify(value.slice(0, 2000))}`);
  }
}
