// The json_to_metadata filter of one request: holds a body until it is complete, and copies its values.

import {
  DataStatus,
  defineLayout,
  type HeaderBlock,
  HeadersStatus,
  type HttpFilter,
  headerKey,
  type Json,
  type Memory,
  type Scope,
  type StreamControl,
  type Struct,
} from '../../../sdk.js';
import type { BodyRules, CompiledRule, CompiledRules, Target } from './rules.js';

export const BodyStats = defineLayout({
  'rq.success': 'counter',
  'rq.mismatched_content_type': 'counter',
  'rq.no_body': 'counter',
  'rq.invalid_json_body': 'counter',
  'resp.success': 'counter',
  'resp.mismatched_content_type': 'counter',
  'resp.no_body': 'counter',
  'resp.invalid_json_body': 'counter',
});

const { at } = BodyStats;
/** The counters of a direction. */
const REQUEST = {
  success: at['rq.success'],
  mismatch: at['rq.mismatched_content_type'],
  none: at['rq.no_body'],
  invalid: at['rq.invalid_json_body'],
};
const RESPONSE: typeof REQUEST = {
  success: at['resp.success'],
  mismatch: at['resp.mismatched_content_type'],
  none: at['resp.no_body'],
  invalid: at['resp.invalid_json_body'],
};

const CONTENT_TYPE = headerKey('content-type');
const utf8 = new TextDecoder('utf-8', { fatal: true });

export class JsonToMetadataFilter implements HttpFilter {
  readonly #stream: StreamControl;
  readonly #rules: CompiledRules;
  readonly #memory: Memory;
  readonly #stats: Scope;
  #awaitsRequest = false;
  #awaitsResponse = false;

  constructor(stream: StreamControl, rules: CompiledRules, memory: Memory, stats: Scope) {
    this.#stream = stream;
    this.#rules = rules;
    this.#memory = memory;
    this.#stats = stats;
  }

  decodeHeaders(headers: HeaderBlock, endStream: boolean): HeadersStatus {
    this.#awaitsRequest = this.#begin(this.#rules.request, headers, endStream, REQUEST);
    return this.#awaitsRequest ? HeadersStatus.StopIteration : HeadersStatus.Continue;
  }

  decodeData(offset: number, length: number, endStream: boolean): DataStatus {
    if (!this.#awaitsRequest) return DataStatus.Continue;
    if (!endStream) return DataStatus.StopAndBuffer;
    this.#awaitsRequest = false;
    this.#read(this.#rules.request!, [this.#stream.readRequestBytes(), this.#bytes(offset, length)], REQUEST);
    return DataStatus.Continue;
  }

  decodeTrailers(): HeadersStatus {
    if (this.#awaitsRequest) this.#read(this.#rules.request!, [this.#stream.readRequestBytes()], REQUEST);
    this.#awaitsRequest = false;
    return HeadersStatus.Continue;
  }

  encodeHeaders(headers: HeaderBlock, endStream: boolean): HeadersStatus {
    this.#awaitsResponse = this.#begin(this.#rules.response, headers, endStream, RESPONSE);
    return this.#awaitsResponse ? HeadersStatus.StopIteration : HeadersStatus.Continue;
  }

  encodeData(offset: number, length: number, endStream: boolean): DataStatus {
    if (!this.#awaitsResponse) return DataStatus.Continue;
    if (!endStream) return DataStatus.StopAndBuffer;
    this.#awaitsResponse = false;
    this.#read(this.#rules.response!, [this.#stream.readResponseBytes(), this.#bytes(offset, length)], RESPONSE);
    return DataStatus.Continue;
  }

  encodeTrailers(): HeadersStatus {
    if (this.#awaitsResponse) this.#read(this.#rules.response!, [this.#stream.readResponseBytes()], RESPONSE);
    this.#awaitsResponse = false;
    return HeadersStatus.Continue;
  }

  /** Returns whether the body is needed. */
  #begin(rules: BodyRules | undefined, headers: HeaderBlock, endStream: boolean, counters: typeof REQUEST): boolean {
    if (rules === undefined) return false;
    if (!rules.accepts(headers.get(CONTENT_TYPE) ?? '')) {
      this.#stats.increment(counters.mismatch);
      this.#setAll(rules.rules, 'error');
      return false;
    }
    if (endStream) this.#read(rules, [], counters);
    return !endStream;
  }

  #bytes(offset: number, length: number): Uint8Array {
    return this.#memory.bytes.subarray(offset, offset + length);
  }

  #read({ rules }: BodyRules, pieces: readonly Uint8Array[], counters: typeof REQUEST): void {
    const body = Buffer.concat(pieces);
    if (body.length === 0) {
      this.#stats.increment(counters.none);
      return this.#setAll(rules, 'missing');
    }
    let root: Json;
    try {
      root = JSON.parse(utf8.decode(body)) as Json;
    } catch {
      this.#stats.increment(counters.invalid);
      return this.#setAll(rules, 'error');
    }
    this.#stats.increment(counters.success);
    if (typeof root !== 'object' || root === null) return this.#setAll(rules, 'missing');
    const values = new Values(this.#stream);
    for (const rule of rules) values.apply(rule, root);
    values.finish();
  }

  #setAll(rules: readonly CompiledRule[], outcome: 'missing' | 'error'): void {
    const values = new Values(this.#stream);
    for (const rule of rules) values.set(rule[outcome]);
    values.finish();
  }
}

/** The values of one body, which become dynamic metadata together. */
class Values {
  readonly #stream: StreamControl;
  readonly #structs = new Map<string, Record<string, Json>>();

  constructor(stream: StreamControl) {
    this.#stream = stream;
  }

  apply({ missing, path, present }: CompiledRule, root: Json): void {
    let parent: Json | undefined = root;
    for (let depth = 0; depth < path.length - 1; depth++) {
      parent = memberOf(parent, path[depth]!);
      if (typeof parent !== 'object' || parent === null || Array.isArray(parent)) return this.set(missing);
    }
    if (present === undefined) return;
    // As in Envoy, a fixed value is set whether the key is present or not.
    if (present.value !== undefined) return this.set(present);
    const found = memberOf(parent, path.at(-1)!);
    const value = found === undefined ? undefined : present.convert(found);
    if (value === undefined) this.set(missing);
    else if (value !== '' || !present.skipsEmpty) this.set(present, value);
  }

  set(target: Target | undefined, value = target?.value): void {
    if (target === undefined || value === undefined) return;
    const { key, namespace, preserves } = target;
    const before = preserves ? this.#stream.info.dynamicMetadata?.get(namespace) : undefined;
    if (before !== undefined && Object.hasOwn(before, key)) return;
    const struct = this.#structs.get(namespace) ?? (Object.create(null) as Record<string, Json>);
    struct[key] = value;
    this.#structs.set(namespace, struct);
  }

  finish(): void {
    for (const [namespace, struct] of this.#structs)
      this.#stream.info.ownDynamicMetadata().merge(namespace, struct as Struct);
  }
}

function memberOf(value: Json | undefined, key: string): Json | undefined {
  if (typeof value !== 'object' || value === null || Array.isArray(value) || !Object.hasOwn(value, key))
    return undefined;
  return (value as Struct)[key];
}
