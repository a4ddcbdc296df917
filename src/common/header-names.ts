// Names of HTTP header fields as small integers: known ones have a number of their own, all others are OTHER_HEADER.
//
// Parsers find the number by length and bytes; rules, filters and formatters compare numbers and look at bytes only for
// names that are not known here. Adding a name is one entry in NAMES.

/** Field names with a number. The order is free; a number is its position plus 1. */
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
  'x-envoy-ratelimited',
  'x-envoy-immediate-health-check-fail',
  'x-client-trace-id',
  'grpc-status',
  'origin',
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
}

const ids = new Map<string, number>(NAMES.map((name, index) => [name, index + 1]));
const encoder = new TextEncoder();

/** Known names by number; [OTHER_HEADER] is empty. */
export const HEADER_NAMES: readonly string[] = ['', ...NAMES];

/** The number of a name that is known at compile time. */
export function knownHeader(name: KnownHeader): number {
  return ids.get(name)!;
}

/** The key for any name, known or not. */
export function headerKey(name: string): HeaderKey {
  const lower = name.toLowerCase();
  return { id: ids.get(lower) ?? OTHER_HEADER, name: lower, bytes: encoder.encode(lower) };
}

/**
 * The number of the name in bytes[start, end), compared without regard to case; OTHER_HEADER when it is not known.
 * Names are found by length, then by their bytes: an unknown name usually fails at the first byte of few candidates.
 */
export function headerIdOf(bytes: Uint8Array, start: number, end: number): number {
  const length = end - start;
  if (length >= BY_LENGTH.length) return OTHER_HEADER;
  const candidates = BY_LENGTH[length]!;
  for (let i = 0; i < candidates.length; i++) {
    const candidate = candidates[i]!;
    const name = candidate.bytes;
    let at = 0;
    while (at < length && FOLD[bytes[start + at]!] === name[at]) at++;
    if (at === length) return candidate.id;
  }
  return OTHER_HEADER;
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

const BY_LENGTH: HeaderKey[][] = indexByLength();

function makeFold(): Uint8Array {
  const fold = new Uint8Array(256);
  for (let i = 0; i < 256; i++) fold[i] = i >= 65 && i <= 90 ? i | 32 : i;
  return fold;
}

function indexByLength(): HeaderKey[][] {
  const longest = Math.max(...NAMES.map((name) => name.length));
  const table: HeaderKey[][] = Array.from({ length: longest + 1 }, () => []);
  for (const name of NAMES) table[name.length]!.push(headerKey(name));
  return table;
}
