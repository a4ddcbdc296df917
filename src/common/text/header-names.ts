// Names of HTTP header fields as small integers: known ones have a number of their own, all others are OTHER_HEADER.
//
// Parsers find the number by length and bytes; rules, filters and formatters compare numbers and look at bytes only for
// names that are not known here. Adding a name is one entry in NAMES.

import { kindsThatJoin } from './joined-names.js';

/** Field names with a number: its position plus 1, at most 63, for a head has a bit for each. The order is free behind the names of ConnectionHeader. */
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

/** The number of every name that is not in the list. */
export const OTHER_HEADER = 0;

/** A field name that rules and filters look for: made once, when configuration is read. */
export interface HeaderKey {
  /** Number of a known name, or OTHER_HEADER. */
  readonly id: number;
  /** The name in lower case. */
  readonly name: string;
  /** The same in bytes. */
  readonly bytes: Uint8Array;
  /** Bits of HeadKind: where several fields of the name are one value. */
  readonly joinedIn: number;
}

const ids = new Map<string, number>(NAMES.map((name, index) => [name, index + 1]));
const encoder = new TextEncoder();

/** Known names by number; [OTHER_HEADER] is empty. */
export const HEADER_NAMES: readonly string[] = ['', ...NAMES];

/** The number of a name that is known at compile time. */
export function knownHeader(name: KnownHeader): number {
  return ids.get(name)!;
}

/** A set of known names, for HeaderBlock.mayHaveOneOf(). */
export class HeaderSet {
  /** A bit for each of the numbers below 32, and for each of those from there on. */
  readonly low: number;
  readonly high: number;

  /** Names that are not known are left out. */
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

/** Whether it can be the name of a field: a token (RFC 9110, 5.6.2). */
export function isFieldName(name: string): boolean {
  return /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/.test(name);
}

/** The key for any name, known or not. */
export function headerKey(name: string): HeaderKey {
  const lower = name.toLowerCase();
  const id = ids.get(lower) ?? OTHER_HEADER;
  return { id, name: lower, bytes: encoder.encode(lower), joinedIn: kindsThatJoin(lower) };
}

/**
 * Numbers of the names that frame messages or belong to one connection, for code that decides by them byte for byte. They
 * are the first in NAMES.
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

/** Whether the number is one of ConnectionHeader. */
export function isConnectionHeader(id: number): boolean {
  return id !== OTHER_HEADER && id <= ConnectionHeader.Expect;
}

/** No known name is longer. */
export const LONGEST_NAME = Math.max(...NAMES.map((name) => name.length));

/**
 * The number of the name in bytes[start, end), compared without regard to case; OTHER_HEADER when it is not known. `view` are
 * the same bytes. Length, first, middle and last byte choose a slot; it holds one candidate at most times, which is compared.
 */
export function headerIdOf(bytes: Uint8Array, view: DataView, start: number, end: number): number {
  const length = end - start;
  if (length === 0 || length > LONGEST_NAME) return OTHER_HEADER;
  let id = SLOTS[slotOf(length, bytes[start]!, bytes[start + (length >> 1)]!, bytes[end - 1]!)]!;
  for (; id !== OTHER_HEADER; id = NEXT_IN_SLOT[id]!) {
    if (NAME_LENGTHS[id] !== length) continue;
    if (length >= 4 ? isName(view, start, end, id) : equalsFolded(bytes, start, end, SHORT_NAMES[id]!)) return id;
  }
  return OTHER_HEADER;
}

/** Compares four bytes at a time; the last four overlap the ones before. */
function isName(view: DataView, start: number, end: number, id: number): boolean {
  let at = start;
  for (let word = FIRST_WORD[id]!; at < end; at += 4, word++) {
    const from = at + 4 <= end ? at : end - 4;
    if ((view.getInt32(from, true) | CASE_BITS[word]!) !== NAME_WORDS[word]) return false;
  }
  return true;
}

/** Whether bytes[start, end) is `name` (lower case) without regard to case. */
export function equalsFolded(bytes: Uint8Array, start: number, end: number, name: Uint8Array): boolean {
  const length = end - start;
  if (length !== name.length) return false;
  for (let i = 0; i < length; i++) if (FOLD[bytes[start + i]!] !== name[i]) return false;
  return true;
}

/** ASCII letters to lower case, every other byte to itself. */
export const FOLD = /* @__PURE__ */ makeFold();

const NAME_LENGTHS = Uint8Array.from(['', ...NAMES], (name) => name.length);
/** Those of less than four letters. */
const SHORT_NAMES: readonly (Uint8Array | undefined)[] = ['', ...NAMES].map((name) =>
  name.length < 4 ? encoder.encode(name) : undefined,
);

/** Words of the longer names, those of name `id` from FIRST_WORD[id] on, and in CASE_BITS what makes their letters small ones. */
const FIRST_WORD = new Uint16Array(NAMES.length + 1);
const [NAME_WORDS, CASE_BITS] = nameWords();

/** First known name of a slot, and the next one of the same slot; OTHER_HEADER ends the chain. */
const SLOTS = new Uint8Array(256);
const NEXT_IN_SLOT = new Uint8Array(NAMES.length + 1);
fillSlots();

/** Letters of either case fall into the same slot: bit 5 is set in all bytes. */
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
