// The cache of one request: answers it, asks its host whether the stored response is still valid, or stores the response.

import {
  type Clock,
  DataStatus,
  type HeaderBlock,
  HeadersStatus,
  type HttpFilter,
  headerKey,
  Method,
  ResponseFlag,
  requestScheme,
  type StreamControl,
} from '../../../sdk.js';
import { byteRange } from './byte-range.js';
import { NO_DIRECTIVES, type RequestDirectives, requestDirectives } from './cache-control.js';
import type { ResponseStore } from './store.js';
import { allValues, CACHE_CONTROL, type Field, fieldsOf, isCacheable, StoredResponse } from './stored-response.js';
import type { VaryingFields, VaryRules } from './vary.js';

/** What the filters of one chain share on a worker. */
export interface CacheContext {
  readonly clock: Clock;
  readonly memory: { readonly bytes: Uint8Array };
  readonly store: ResponseStore;
  readonly vary: VaryRules;
  /** Distinguishes the responses of this chain from others. */
  readonly keyPrefix: string;
  readonly maxBodyBytes: number;
  /** Of bodies that a filter of the chain holds. */
  readonly bufferLimit: number;
  readonly ignoresRequestDirectives: boolean;
}

const HOST = headerKey('host');
const PRAGMA = headerKey('pragma');
const RANGE = headerKey('range');
const AGE = headerKey('age');
const CONTENT_LENGTH = headerKey('content-length');
const CONTENT_RANGE = headerKey('content-range');
const IF_NONE_MATCH = headerKey('if-none-match');
const IF_MODIFIED_SINCE = headerKey('if-modified-since');
/** As in Envoy, requests with one of these pass by. */
const PASSING = ['authorization', 'if-none-match', 'if-modified-since', 'if-range'].map((name) => headerKey(name));

const DETAILS = 'cache.response_from_cache_filter';
/** As in Envoy, a 304 does not change these. */
const KEPT_FIELDS = new Set(['content-length', 'content-encoding', 'content-type', 'content-range', 'vary', 'etag']);

/** A response that is being received. */
interface Insertion {
  readonly status: number;
  readonly fields: readonly Field[];
  readonly names: readonly string[];
  readonly age: string | undefined;
  /** The first `bytes` of it are the body so far: hosts may send it in many small pieces. All of it is reserved. */
  buffer: Uint8Array;
  bytes: number;
}

export class CacheFilter implements HttpFilter {
  readonly #context: CacheContext;
  readonly #stream: StreamControl;
  /** Undefined: the request passes by. */
  #key: string | undefined;
  /** That of the key. */
  #cluster = '';
  #fields: VaryingFields | undefined;
  #isHead = false;
  #storesResponse = false;
  /** The response that the host is asked about. */
  #stale: StoredResponse | undefined;
  #insertion: Insertion | undefined;
  /** Its own reply passes. */
  #isServing = false;
  /** Takes the place of the body of a 304. */
  #validBody: Uint8Array | undefined;

  constructor(context: CacheContext, stream: StreamControl) {
    this.#context = context;
    this.#stream = stream;
  }

  decodeHeaders(headers: HeaderBlock, endStream: boolean): HeadersStatus {
    const { clock, ignoresRequestDirectives, store, vary } = this.#context;
    if (!endStream || !mayBeCached(headers)) return HeadersStatus.Continue;
    const directives = ignoresRequestDirectives
      ? NO_DIRECTIVES
      : requestDirectives(allValues(headers, CACHE_CONTROL), allValues(headers, PRAGMA));
    const key = this.#keyOf(headers);
    if (key === undefined) return HeadersStatus.Continue;
    this.#key = key;
    this.#isHead = headers.method === Method.Head;
    this.#storesResponse = !directives.noStore && !this.#isHead;
    this.#fields = vary.fieldsOf(headers);
    const found = store.find(key, this.#fields);
    return found === undefined ? HeadersStatus.Continue : this.#hit(found, headers, directives, clock.realtimeMs);
  }

  encodeHeaders(headers: HeaderBlock, endStream: boolean): HeadersStatus {
    if (this.#key === undefined || this.#isServing) return HeadersStatus.Continue;
    const stale = this.#stale;
    if (stale !== undefined && headers.status === 304) return this.#validated(stale, headers, endStream);
    if (this.#storesResponse) this.#begin(headers, endStream);
    return HeadersStatus.Continue;
  }

  encodeData(offset: number, length: number, endStream: boolean): DataStatus {
    if (this.#validBody !== undefined) return this.#replaceData(endStream);
    if (this.#insertion === undefined) return DataStatus.Continue;
    if (!this.#keep(this.#insertion, offset, length)) this.#abandon();
    else if (endStream) this.#insert();
    return DataStatus.Continue;
  }

  /** Responses with trailers are not stored. */
  encodeTrailers(): HeadersStatus {
    if (this.#validBody !== undefined) this.#addBody(this.#validBody);
    this.#abandon();
    return HeadersStatus.Continue;
  }

  onDestroy(): void {
    this.#abandon();
  }

  /** Undefined: the request has no cluster whose responses could be stored. */
  #keyOf(headers: HeaderBlock): string | undefined {
    const host = headers.get(HOST);
    const scheme = requestScheme(headers);
    const cluster = this.#stream.route()?.clusterName ?? '';
    this.#cluster = cluster;
    if (host === undefined || scheme === '' || cluster === '') return undefined;
    return [this.#context.keyPrefix, cluster, scheme, host.toLowerCase(), headers.pathText()].join('\n');
  }

  #hit(found: StoredResponse, headers: HeaderBlock, directives: RequestDirectives, nowMs: number): HeadersStatus {
    if (!found.needsValidation(directives, nowMs)) {
      this.#serve(found, headers, nowMs);
      return HeadersStatus.StopIteration;
    }
    this.#stale = found;
    if (found.etag !== undefined) headers.set(IF_NONE_MATCH, found.etag);
    if (found.modified !== undefined) headers.set(IF_MODIFIED_SINCE, found.modified);
    return HeadersStatus.Continue;
  }

  /** Answers with a stored response, or the range of it that the request asks for. */
  #serve(found: StoredResponse, headers: HeaderBlock, nowMs: number): void {
    const { body, fields, status } = found;
    const index = headers.find(RANGE);
    const field = index >= 0 && headers.findNext(RANGE, index) < 0 ? headers.value(index) : undefined;
    const range = status === 200 ? byteRange(field, body.length) : undefined;
    const part =
      range === undefined ? body : range === 'unsatisfiable' ? NO_BYTES : body.subarray(range.start, range.end);
    this.#isServing = true;
    this.#stream.sendLocalReply({
      status: range === undefined ? status : range === 'unsatisfiable' ? 416 : 206,
      body: part,
      details: DETAILS,
      flags: ResponseFlag.ResponseFromCacheFilter,
      isVerbatim: true,
      isCopy: true,
      editHeaders: (reply) => {
        for (const [, value, key] of fields) reply.add(key, value);
        if (status !== 204) reply.set(CONTENT_LENGTH, String(part.length));
        reply.set(AGE, String(found.age(nowMs)));
        if (range === 'unsatisfiable') reply.set(CONTENT_RANGE, `bytes */${body.length}`);
        else if (range !== undefined) reply.set(CONTENT_RANGE, `bytes ${range.start}-${range.end - 1}/${body.length}`);
      },
    });
  }

  /** The host says that the stored response is valid: its body follows the head of the 304, to which fields are added. */
  #validated(stale: StoredResponse, headers: HeaderBlock, endStream: boolean): HeadersStatus {
    const { clock, store } = this.#context;
    this.#isServing = true;
    const { info } = this.#stream;
    info.responseFlags |= ResponseFlag.ResponseFromCacheFilter;
    info.responseCodeDetails = DETAILS;
    const renewed = mergedFields(stale.fields, fieldsOf(headers));
    const age = headers.get(AGE);
    const valid = new StoredResponse(stale.status, renewed, stale.body, age, clock.realtimeMs);
    const names = this.#context.vary.namesIn(valuesOf(stale.fields, 'vary'));
    if (names !== undefined && isCurrent(stale, headers)) store.put(this.#key!, names, this.#fields!, valid);
    headers.setStatus(stale.status);
    for (const [name, , key] of stale.fields) if (KEPT_FIELDS.has(name)) headers.remove(key);
    const given = new Set(fieldsOf(headers).map(([name]) => name));
    for (const [name, value, key] of stale.fields) if (!given.has(name)) headers.add(key, value);
    if (stale.status !== 204) headers.set(CONTENT_LENGTH, String(stale.body.length));
    const body = this.#isHead ? NO_BYTES : stale.body;
    // Over HTTP/2 the end of a 304 may follow its head.
    if (!endStream) this.#validBody = body;
    else this.#addBody(body);
    return HeadersStatus.Continue;
  }

  /** The stored body takes the place of what the host sends with its 304. */
  #replaceData(endStream: boolean): DataStatus {
    if (endStream) {
      this.#addBody(this.#validBody!);
      this.#stream.continueEncoding();
    }
    return DataStatus.StopNoBuffer;
  }

  #addBody(body: Uint8Array): void {
    if (body.length === 0) return;
    // The limit is that of all filters: it must not become less.
    if (body.length > this.#context.bufferLimit) this.#stream.setResponseBufferLimit(body.length);
    this.#stream.addResponseBytes(body);
  }

  #begin(headers: HeaderBlock, endStream: boolean): void {
    const { maxBodyBytes, vary } = this.#context;
    // A later filter may have had another route chosen: the response is not that of the key.
    if (this.#stream.route()?.clusterName !== this.#cluster) return;
    const length = Number(headers.get(CONTENT_LENGTH) ?? 0);
    const names = isCacheable(headers) && !(length > maxBodyBytes) ? vary.namesOf(headers) : undefined;
    if (names === undefined) return;
    const fields = fieldsOf(headers);
    this.#insertion = { status: headers.status, fields, names, age: headers.get(AGE), buffer: NO_BYTES, bytes: 0 };
    if (endStream) this.#insert();
  }

  /** Returns false if there is no room. */
  #keep(insertion: Insertion, offset: number, length: number): boolean {
    const { maxBodyBytes, memory, store } = this.#context;
    const { buffer, bytes } = insertion;
    const end = bytes + length;
    if (end > maxBodyBytes) return false;
    if (end > buffer.length) {
      const size = Math.min(Math.max(end, 2 * buffer.length), maxBodyBytes);
      if (!store.reserve(size - buffer.length)) return false;
      insertion.buffer = new Uint8Array(size);
      insertion.buffer.set(buffer.subarray(0, bytes));
    }
    insertion.buffer.set(memory.bytes.subarray(offset, offset + length), bytes);
    insertion.bytes = end;
    return true;
  }

  #insert(): void {
    const { age, buffer, bytes, fields, names, status } = this.#insertion!;
    const { clock, store } = this.#context;
    this.#abandon();
    const body = bytes === buffer.length ? buffer : buffer.slice(0, bytes);
    store.put(this.#key!, names, this.#fields!, new StoredResponse(status, fields, body, age, clock.realtimeMs));
  }

  #abandon(): void {
    if (this.#insertion === undefined) return;
    this.#context.store.release(this.#insertion.buffer.length);
    this.#insertion = undefined;
  }
}

const ETAG = headerKey('etag');
const NO_BYTES = new Uint8Array(0);

/** Returns whether the 304 is about the stored response. */
function isCurrent({ etag }: StoredResponse, headers: HeaderBlock): boolean {
  const own = headers.get(ETAG);
  return own === undefined || own === etag;
}

function valuesOf(fields: readonly Field[], name: string): string | undefined {
  const values = fields.filter(([each]) => each === name).map(([, value]) => value);
  return values.length === 0 ? undefined : values.join(',');
}

function mayBeCached(headers: HeaderBlock): boolean {
  if (headers.method !== Method.Get && headers.method !== Method.Head) return false;
  for (const key of PASSING) if (headers.find(key) >= 0) return false;
  return true;
}

/** Returns the stored fields, with those of the 304 in their place. */
function mergedFields(stored: readonly Field[], renewed: readonly Field[]): Field[] {
  const replaced = new Set(renewed.map(([name]) => name).filter((name) => !KEPT_FIELDS.has(name)));
  return [...stored.filter(([name]) => !replaced.has(name)), ...renewed.filter(([name]) => replaced.has(name))];
}
