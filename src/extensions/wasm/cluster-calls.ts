// HTTP calls of modules to hosts of clusters. Pools, circuit breakers and stats are those of the cluster.

import { keyOf } from '../script/header-keys.js';
import {
  type CallingThread,
  type ClusterManager,
  type HeaderBlock,
  type HeaderKey,
  HttpCall,
  type HttpCallAnswer,
  type HttpCallEvents,
  type HttpCallRequest,
  headerKey,
  Method,
  methodOf,
} from '../sdk.js';
import { Result } from './abi.js';
import type { HttpCalls, WasmCall, WasmCallAnswer, WasmCallRequest } from './vm/services.js';

/** A longer response fails. */
const MAX_ANSWER_BYTES = 1024 * 1024;
/** The longest timer. */
const MAX_TIMEOUT_MS = 2 ** 31 - 1;

const HOST = headerKey('host');
const INTERNAL = headerKey('x-envoy-internal');
const EXPECTED_TIMEOUT = headerKey('x-envoy-expected-rq-timeout-ms');
/** Follow from the connection and the body. */
const FRAMING = new Set([
  ...['host', 'content-length', 'transfer-encoding', 'connection', 'keep-alive', 'upgrade', 'te', 'trailer'],
]);

export class ClusterCalls implements HttpCalls {
  readonly #calls: CallingThread;
  readonly #clusters: ClusterManager;

  constructor(calls: CallingThread, clusters: ClusterManager) {
    this.#calls = calls;
    this.#clusters = clusters;
  }

  start(request: WasmCallRequest, done: (answer: WasmCallAnswer) => void): WasmCall | Result {
    const cluster = this.#clusters.find(request.cluster)?.current;
    const head = headOf(request);
    if (cluster === undefined || head === undefined) return Result.BadArgument;
    const events = new CallEvents(done);
    try {
      return HttpCall.start(this.#calls, cluster, new CallRequest(request, head), events) ?? NO_CALL;
    } catch {
      // The cluster has counted it.
      return Result.InternalFailure;
    }
  }
}

interface CallHead {
  readonly method: string;
  readonly path: string;
  readonly authority: string;
  readonly fields: readonly (readonly [HeaderKey, string])[];
}

/** Returns undefined for a head that cannot be sent. */
function headOf({ headers }: WasmCallRequest): CallHead | undefined {
  const value = (name: string) => headers.find(([key]) => key === name)?.[1];
  const method = value(':method');
  const path = value(':path');
  const authority = value(':authority') ?? value('host');
  if (method === undefined || path === undefined || authority === undefined) return undefined;
  if (!/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(method) || methodOf(method) === Method.Connect) return undefined;
  if (!/^(?:\*|\/[\x21\x22\x24-\x7e\x80-\xff]*)$/.test(path) || !isValue(authority)) return undefined;
  const fields: [HeaderKey, string][] = [];
  for (const [name, text] of headers) {
    if (name.startsWith(':') || FRAMING.has(name)) continue;
    if (!isValue(text)) return undefined;
    try {
      fields.push([keyOf(name), text]);
    } catch {
      return undefined;
    }
  }
  return { method, path, authority, fields };
}

function isValue(text: string): boolean {
  return !/[\r\n\0]/.test(text);
}

class CallRequest implements HttpCallRequest {
  readonly body: readonly Uint8Array[];
  readonly timeoutMs: number;
  readonly maxAnswerBytes = MAX_ANSWER_BYTES;
  readonly #head: CallHead;
  readonly #hasTimeout: boolean;

  constructor({ body, timeoutMs }: WasmCallRequest, head: CallHead) {
    this.body = body.length === 0 ? [] : [body];
    this.#hasTimeout = timeoutMs > 0;
    this.timeoutMs = this.#hasTimeout ? Math.min(timeoutMs, MAX_TIMEOUT_MS) : MAX_TIMEOUT_MS;
    this.#head = head;
  }

  writeHead(head: HeaderBlock): void {
    const { authority, fields, method, path } = this.#head;
    head.setMethod(methodOf(method), method);
    head.setPath(path);
    head.add(HOST, authority);
    for (const [key, value] of fields) head.add(key, value);
    head.set(INTERNAL, 'true');
    if (this.#hasTimeout) head.set(EXPECTED_TIMEOUT, String(this.timeoutMs));
  }
}

class CallEvents implements HttpCallEvents {
  readonly #done: (answer: WasmCallAnswer) => void;
  #headers: [string, string][] = [];

  constructor(done: (answer: WasmCallAnswer) => void) {
    this.#done = done;
  }

  onHead(head: HeaderBlock): void {
    this.#headers = [[':status', String(head.status)]];
    for (let index = 0; index < head.size; index++)
      if (!head.isRemoved(index)) this.#headers.push([head.name(index), head.value(index)]);
  }

  onAnswer({ body }: HttpCallAnswer): void {
    this.#done({ headers: this.#headers, body });
  }

  onFailure(): void {
    this.#done({ headers: [], body: Buffer.alloc(0) });
  }
}

/** A call that has ended before it began. */
const NO_CALL: WasmCall = { cancel() {} };
