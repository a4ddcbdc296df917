// HTTP header names as small integers: each known name has its own number, all others are OTHER_HEADER.
//
// Parsers derive the number from length and bytes. Rules, filters and formatters compare numbers, and compare bytes only for
// unknown names. To add a name, add an entry to NAMES.

import { joinedKinds } from './joined-names.js';

/**
 * Known field names. A name's number is its position plus 1, at most 63, because a head has one bit per name. Names after
 * those of ConnectionHeader may be in any order.
 */
const NAMES = [
  'host',
  'connection',
  'content-length',
  'transfer-encoding',
  'keep-alive',
  'proxy-connection',
  'te',
  'trailer',
  'upgrade',
  'expect',
  'date',
  'server',
  'user-agent',
  'accept',
  'accept-encoding',
  'content-type',
  'content-encoding',
  'cookie',
  'set-cookie',
  'location',
  'referer',
  'authorization',
  'via',
  'x-forwarded-for',
  'x-forwarded-proto',
  'x-forwarded-host',
  'x-request-id',
  'x-envoy-upstream-service-time',
  'x-envoy-expected-rq-timeout-ms',
  'x-envoy-original-path',
  'x-envoy-original-host',
  'x-envoy-internal',
  'x-envoy-external-address',
  'x-envoy-attempt-count',
  'x-envoy-retry-on',
  'x-envoy-max-retries',
  'x-envoy-retriable-status-codes',
  'x-envoy-upstream-rq-timeout-ms',
  'x-envoy-upstream-rq-per-try-timeout-ms',
  'x-envoy-decorator-operation',
  'x-envoy-overloaded',
  'x-envoy-upstream-canary',
  'x-envoy-ratelimited',
  'x-envoy-immediate-health-check-fail',
  'x-client-trace-id',
  'grpc-status',
  'origin',
  'x-envoy-upstream-rq-timeout-alt-response',
  'x-envoy-upstream-stream-duration-ms',
  'x-envoy-upstream-alt-stat-name',
  'x-envoy-hedge-on-per-try-timeout',
  'x-envoy-retry-grpc-on',
  'x-envoy-retriable-header-names',
  'x-envoy-force-trace',
  'x-envoy-ip-tags',
  'x-envoy-original-url',
  'x-envoy-is-timeout-retry',
  'x-envoy-downstream-service-cluster',
  'x-envoy-downstream-service-node',
  'x-forwarded-client-cert',
  'proxy-authorization',
] as const;

export type KnownHeader = (typeof NAMES)[number];

/** The number of every unknown name. */
export const OTHER_HEADER = 0;

/** A field name used by rules and filters, created once when the configuration is read. */
export interface HeaderKey {
  /** Number of a known name, or OTHER_HEADER. */
  readonly id: number;
  /** The name in lower case. */
  readonly name: string;
  /** The name as bytes. */
  readonly bytes: Uint8Array;
  /** HeadKind bits: messages in which several fields of this name form one value. */
  readonly joinedIn: number;
}

const ids = new Map<string, number>(NAMES.map((name, index) => [name, index + 1]));
const encoder = new TextEncoder();

/** Known names by number; [OTHER_HEADER] is empty. */
export const HEADER_NAMES: readonly string[] = ['', ...NAMES];

/** Returns the number of a name that is known at compile time. */
export function knownHeader(name: KnownHeader): number {
  return ids.get(name)!;
}

/** A set of known names, for HeaderBlock.mayHaveOneOf(). */
export class HeaderSet {
  /** One bit per name: numbers below 32 in `low`, numbers from 32 in `high`. */
  readonly low: number;
  readonly high: number;

  /** Unknown names are ignored. */
  constructor(keys: readonly HeaderKey[]) {
    let low = 0;
    let high = 0;
    for (const { id } of keys) {
      if (id >= 32) high |= 1 << (id - 32);
      else if (id !== OTHER_HEADER) low |= 1 << id;
    }
    this.low = low;
    this.high = high;
  }
}

/** Returns whether a text is a valid field name: a token (RFC 9110, 5.6.2). */
export function isFieldName(name: string): boolean {
  return /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/.test(name);
}

/** Returns the key of any name, known or unknown. */
export function headerKey(name: string): HeaderKey {
  const lower = name.toLowerCase();
  const id = ids.get(lower) ?? OTHER_HEADER;
  return { id, name: lower, bytes: encoder.encode(lower), joinedIn: joinedKinds(lower) };
}

/**
 * Numbers of the names that frame messages or belong to one connection, for code that handles them explicitly. They are the
 * first in NAMES.
 */
export const enum ConnectionHeader {
  Host = 1,
  Connection = 2,
  ContentLength = 3,
  TransferEncoding = 4,
  KeepAlive = 5,
  ProxyConnection = 6,
  Te = 7,
  Trailer = 8,
  Upgrade = 9,
  Expect = 10,
}

/** Returns whether a number belongs to ConnectionHeader. */
export function isConnectionHeader(id: number): boolean {
  return id !== OTHER_HEADER && id <= ConnectionHeader.Expect;
}

/** Length of the longest known name. */
export const MAX_NAME_BYTES = Math.max(...NAMES.map((name) => name.length));

/**
 * Returns the number of the name in bytes[start, end), ignoring case; OTHER_HEADER if it is unknown. `view` covers the same
 * bytes. The length and the first, middle and last byte select a slot, which usually holds one candidate to compare.
 */
export function headerIdOf(bytes: Uint8Array, view: DataView, start: number, end: number): number {
  const length = end - start;
  if (length === 0 || length > MAX_NAME_BYTES) return OTHER_HEADER;
  let id = SLOTS[slotOf(length, bytes[start]!, bytes[start + (length >> 1)]!, bytes[end - 1]!)]!;
  for (; id !== OTHER_HEADER; id = NEXT_IN_SLOT[id]!) {
    if (NAME_LENGTHS[id] !== length) continue;
    if (length >= 4 ? isName(view, start, end, id) : equalsFolded(bytes, start, end, SHORT_NAMES[id]!)) return id;
  }
  return OTHER_HEADER;
}

/** Compares four bytes at a time; the last word may overlap the one before. */
function isName(view: DataView, start: number, end: number, id: number): boolean {
  let at = start;
  for (let word = FIRST_WORD[id]!; at < end; at += 4, word++) {
    const from = at + 4 <= end ? at : end - 4;
    if ((view.getInt32(from, true) | CASE_BITS[word]!) !== NAME_WORDS[word]) return false;
  }
  return true;
}

/** Returns whether bytes[start, end) equals `name` (lower case), ignoring case. */
export function equalsFolded(bytes: Uint8Array, start: number, end: number, name: Uint8Array): boolean {
  const length = end - start;
  if (length !== name.length) return false;
  for (let i = 0; i < length; i++) if (FOLD[bytes[start + i]!] !== name[i]) return false;
  return true;
}

/** Maps ASCII letters to lower case, every other byte to itself. */
export const FOLD = /* @__PURE__ */ makeFold();

const NAME_LENGTHS = Uint8Array.from(['', ...NAMES], (name) => name.length);
/** Names of less than four letters. */
const SHORT_NAMES: readonly (Uint8Array | undefined)[] = ['', ...NAMES].map((name) =>
  name.length < 4 ? encoder.encode(name) : undefined,
);

/**
 * The longer names as words; those of name `id` start at FIRST_WORD[id]. CASE_BITS holds the bits that convert their letters
 * to lower case.
 */
const FIRST_WORD = new Uint16Array(NAMES.length + 1);
const [NAME_WORDS, CASE_BITS] = nameWords();

/** The first known name of each slot, and the next name of the same slot; OTHER_HEADER ends the chain. */
const SLOTS = new Uint8Array(256);
const NEXT_IN_SLOT = new Uint8Array(NAMES.length + 1);
fillSlots();

/** Returns the slot of a name. Bit 5 is set in all bytes, so that both cases of a letter select the same slot. */
function slotOf(length: number, first: number, middle: number, last: number): number {
  return (length * 37 + (first | 32) * 3 + (middle | 32) * 11 + (last | 32) * 5) & 255;
}

function fillSlots(): void {
  for (let id = 1; id <= NAMES.length; id++) {
    const name = encoder.encode(NAMES[id - 1]);
    const slot = slotOf(name.length, name[0]!, name[name.length >> 1]!, name[name.length - 1]!);
    NEXT_IN_SLOT[id] = SLOTS[slot]!;
    SLOTS[slot] = id;
  }
}

function nameWords(): [Int32Array, Int32Array] {
  const words: number[] = [];
  const cases: number[] = [];
  NAMES.forEach((name, index) => {
    FIRST_WORD[index + 1] = words.length;
    if (name.length < 4) return;
    const view = new DataView(encoder.encode(name).buffer);
    for (let at = 0; at < name.length; at += 4) {
      const from = Math.min(at, name.length - 4);
      const letters = [...name.slice(from, from + 4)].map((letter, place) =>
        /[a-z]/.test(letter) ? 0x20 << (place * 8) : 0,
      );
      words.push(view.getInt32(from, true));
      cases.push(letters.reduce((all, bit) => all | bit));
    }
  });
  return [Int32Array.from(words), Int32Array.from(cases)];
}

function makeFold(): Uint8Array {
  const fold = new Uint8Array(256);
  for (let i = 0; i < 256; i++) fold[i] = i >= 65 && i <= 90 ? i | 32 : i;
  return fold;
}
