// A response in a cache, and whether it may be sent.

import { type HeaderBlock, type HeaderKey, headerKey } from '../../../sdk.js';
import {
  httpTime,
  type RequestDirectives,
  type ResponseDirectives,
  responseDirectives,
  seconds,
} from './cache-control.js';

/** A field of a head, its name in lower case; one character per byte. */
export type Field = readonly [name: string, value: string, key: HeaderKey];

export const CACHE_CONTROL = headerKey('cache-control');
const DATE = headerKey('date');
const EXPIRES = headerKey('expires');

/** Fields that follow from the connection and the body, which are not stored. */
const OF_CONNECTION = new Set([
  ...['connection', 'keep-alive', 'proxy-connection', 'transfer-encoding', 'upgrade', 'te', 'trailer'],
  ...['content-length', 'age'],
]);
/** As in Envoy, those of RFC 9110, sections 15.1, without 206: its body is a part. */
const STATUSES = new Set([200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 451, 501]);
/** Of an entry and each of its fields. */
const OVERHEAD = 256;

/** Returns all values of a field, joined by commas; undefined: there is none. */
export function allValues(headers: HeaderBlock, key: HeaderKey): string | undefined {
  let value: string | undefined;
  for (let index = headers.find(key); index >= 0; index = headers.findNext(key, index))
    value = value === undefined ? headers.value(index) : `${value},${headers.value(index)}`;
  return value;
}

/** Returns whether a response may be stored, but for its vary. It needs what its freshness follows from. */
export function isCacheable(headers: HeaderBlock): boolean {
  if (!STATUSES.has(headers.status)) return false;
  const { maxAge, mustValidate, noStore } = responseDirectives(allValues(headers, CACHE_CONTROL));
  const hasExpiry = headers.find(DATE) >= 0 && headers.find(EXPIRES) >= 0;
  return !noStore && (mustValidate || maxAge !== undefined || hasExpiry);
}

/** The fields of a head that are stored. */
export function fieldsOf(headers: HeaderBlock): Field[] {
  const fields: Field[] = [];
  for (let index = 0; index < headers.size; index++) {
    if (headers.isRemoved(index)) continue;
    const name = headers.name(index).toLowerCase();
    if (!OF_CONNECTION.has(name)) fields.push([name, headers.value(index), headerKey(name)]);
  }
  return fields;
}

export class StoredResponse {
  readonly status: number;
  readonly fields: readonly Field[];
  readonly body: Uint8Array;
  /** What it takes in memory, about. */
  readonly bytes: number;
  readonly etag: string | undefined;
  /** Of if-modified-since: last-modified, or else the date, as in Envoy. */
  readonly modified: string | undefined;
  readonly #directives: ResponseDirectives;
  readonly #responseMs: number;
  readonly #initialAgeMs: number;
  readonly #lifetimeMs: number;

  /** `age`: the field of that name; `nowMs`: the time of the response since 1970. */
  constructor(status: number, fields: readonly Field[], body: Uint8Array, age: string | undefined, nowMs: number) {
    const value = (name: string) => fields.find(([each]) => each === name)?.[1];
    const control = fields.filter(([name]) => name === 'cache-control').map(([, each]) => each);
    this.status = status;
    this.fields = fields;
    this.body = body;
    this.bytes = fields.reduce((sum, [name, each]) => sum + name.length + each.length + 64, body.length + OVERHEAD);
    this.etag = value('etag');
    const modified = value('last-modified');
    this.modified = httpTime(modified) === undefined ? value('date') : modified;
    this.#directives = responseDirectives(control.length === 0 ? undefined : control.join(','));
    this.#responseMs = nowMs;
    const dateMs = httpTime(value('date')) ?? nowMs;
    this.#initialAgeMs = Math.max(0, nowMs - dateMs, (seconds(age) ?? 0) * 1000);
    const { maxAge } = this.#directives;
    this.#lifetimeMs = maxAge === undefined ? (httpTime(value('expires')) ?? dateMs) - dateMs : maxAge * 1000;
  }

  /** In whole seconds (RFC 9111, section 4.2.3). */
  age(nowMs: number): number {
    return Math.floor((this.#initialAgeMs + Math.max(0, nowMs - this.#responseMs)) / 1000);
  }

  /** Returns whether the host must be asked before the response is sent. */
  needsValidation({ maxAge, maxStale, minFresh, mustValidate }: RequestDirectives, nowMs: number): boolean {
    const age = this.age(nowMs);
    if (mustValidate || this.#directives.mustValidate || (maxAge !== undefined && maxAge < age)) return true;
    const left = this.#lifetimeMs / 1000 - age;
    if (left <= 0) return this.#directives.noStale || !(maxStale !== undefined && maxStale > -left);
    return minFresh !== undefined && minFresh > left;
  }
}
