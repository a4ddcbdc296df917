// The reply to CLUSTER SLOTS: https://redis.io/commands/cluster-slots

import {
  lineEnd,
  RespError,
  RespScanner,
  readInteger,
} from '../../../extensions/filters/network/redis-proxy/resp/resp-scanner.js';
import { SLOTS } from '../../../upstream/hosts/shards.js';

export interface RedisNode {
  /** IP address or name. */
  readonly host: string;
  readonly port: number;
}

export interface SlotRange {
  readonly first: number;
  readonly last: number;
  /** The primary, and its replicas. */
  readonly nodes: readonly RedisNode[];
}

const ARRAY = '*'.charCodeAt(0);
const STRING = '$'.charCodeAt(0);
const INTEGER = ':'.charCodeAt(0);
const MAX_NAME = 255;
const MAX_RANGES = SLOTS;

/** Returns the ranges in the order of their slots; at least one. Throws a RespError for another reply. */
export function readSlots(reply: Uint8Array): SlotRange[] {
  const values = new Values(reply);
  const count = values.head(ARRAY);
  if (count < 1 || count > MAX_RANGES) throw new RespError(`${Math.max(count, 0)} ranges of slots`);
  const ranges = Array.from({ length: count }, () => readRange(values));
  return ranges.sort((a, b) => a.first - b.first || a.last - b.last);
}

function readRange(values: Values): SlotRange {
  const count = values.head(ARRAY);
  if (count < 3) throw new RespError('a range without a node');
  const first = values.head(INTEGER);
  const last = values.head(INTEGER);
  if (first < 0 || last < first || last >= SLOTS) throw new RespError(`the range of slots from ${first} to ${last}`);
  const nodes: RedisNode[] = [];
  for (let at = 2; at < count; at++) nodes.push(readNode(values));
  return { first, last, nodes };
}

function readNode(values: Values): RedisNode {
  const count = values.head(ARRAY);
  if (count < 2) throw new RespError('a node without an address');
  const host = values.text();
  const port = values.head(INTEGER);
  if (port < 0 || port > 0xffff) throw new RespError(`the port ${port}`);
  // Its identifier, and metadata.
  for (let at = 2; at < count; at++) values.skip();
  return { host, port };
}

/** Reads values one after the other. The reply is complete: a reader has found its end. */
class Values {
  readonly #bytes: Uint8Array;
  #at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  /** Returns the number of an integer, or the count or length of another value. */
  head(type: number): number {
    if (this.#bytes[this.#at] !== type) throw new RespError('a value of another type');
    const line = lineEnd(this.#bytes, this.#at + 1, this.#bytes.length);
    if (line < 0) throw new RespError('it ends too early');
    const number = readInteger(this.#bytes, this.#at + 1, line);
    this.#at = line + 2;
    return number;
  }

  text(): string {
    const length = this.head(STRING);
    if (length < 1 || length > MAX_NAME) throw new RespError('a node without a name');
    const start = this.#at;
    this.#at += length + 2;
    return Buffer.from(this.#bytes.subarray(start, start + length)).toString('latin1');
  }

  skip(): void {
    const length = new RespScanner(SLOTS).scan(this.#bytes, this.#at, this.#bytes.length);
    if (length === 0) throw new RespError('it ends too early');
    this.#at += length;
  }
}
