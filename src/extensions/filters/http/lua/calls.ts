// httpCall(): requests of scripts to hosts of clusters. Pools, circuit breakers and stats are those of the cluster.

import {
  type CallingThread,
  type Cluster,
  type HeaderBlock,
  type HeaderKey,
  HttpCall,
  type HttpCallAnswer,
  type HttpCallEvents,
  type HttpCallRequest,
  headerKey,
  LuaError,
  LuaTable,
  methodOf,
} from '../../../sdk.js';
import { writable } from './objects/headers.js';
import { checked, fieldsOf } from './reply.js';

/** A longer response fails. */
const MAX_ANSWER_BYTES = 1024 * 1024;
/** The longest timer. */
const MAX_TIMEOUT_MS = 2 ** 31 - 1;

const HOST = headerKey('host');
const FORWARDED_FOR = headerKey('x-forwarded-for');
const INTERNAL = headerKey('x-envoy-internal');
const EXPECTED_TIMEOUT = headerKey('x-envoy-expected-rq-timeout-ms');

/** The response's head and body for the script. */
export type CallOutcome = readonly [headers: LuaTable, body: string | null];

export interface CallOptions {
  readonly timeoutMs: number;
  readonly isAsynchronous: boolean;
  readonly returnsDuplicates: boolean;
  readonly sendsForwardedFor: boolean;
}

const OPTIONS: Readonly<Record<string, keyof CallOptions | 'ignored'>> = {
  asynchronous: 'isAsynchronous',
  timeout_ms: 'timeoutMs',
  // The calls of this build are not part of traces.
  trace_sampled: 'ignored',
  return_duplicate_headers: 'returnsDuplicates',
  send_xff: 'sendsForwardedFor',
};

/** Reads the last arguments of httpCall(): a timeout and a flag, or a table. */
export function callOptions(timeout: unknown, flag: unknown): CallOptions {
  const options = { timeoutMs: 0, isAsynchronous: false, returnsDuplicates: false, sendsForwardedFor: true };
  if (Array.isArray(timeout)) {
    for (let i = 0; i < timeout.length; i += 2) {
      const name = OPTIONS[String(timeout[i])];
      if (name === undefined || !Object.hasOwn(OPTIONS, String(timeout[i])))
        throw new LuaError(`"${String(timeout[i])}" is not valid key in httpCall() options`);
      if (name !== 'ignored') (options as Record<string, unknown>)[name] = timeout[i + 1];
    }
  } else {
    if (flag !== undefined && typeof flag !== 'boolean')
      throw new LuaError(`http call asynchronous flag must be 'true', 'false', or empty`);
    options.timeoutMs = Number(timeout);
    options.isAsynchronous = flag ?? false;
  }
  if (!Number.isFinite(options.timeoutMs))
    throw new LuaError(`number expected, got ${timeout === undefined ? 'no value' : typeof timeout}`, 5);
  if (options.timeoutMs < 0) throw new LuaError('http call timeout must be >= 0');
  return options;
}

export class LuaCallRequest implements HttpCallRequest {
  readonly body: readonly Uint8Array[];
  readonly timeoutMs: number;
  readonly maxAnswerBytes = MAX_ANSWER_BYTES;
  readonly #method: string;
  readonly #path: string;
  readonly #host: string;
  readonly #fields: readonly (readonly [HeaderKey, string])[];
  readonly #forwardedFor: string;

  /** `ownIp`: for x-forwarded-for. Throws a LuaError for a head that cannot be sent. */
  constructor(headers: readonly unknown[], body: string | undefined, options: CallOptions, ownIp: string) {
    const fields = fieldsOf(headers);
    const method = fieldValue(fields, ':method');
    const path = fieldValue(fields, ':path');
    const host = fieldValue(fields, ':authority') ?? fieldValue(fields, 'host');
    if (method === undefined || path === undefined || host === undefined)
      throw new LuaError(`http call headers must include ':path', ':method', and ':authority'`);
    if (!/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(method)) throw new LuaError(`'${method}' is not a method`);
    if (!/^(?:\*|\/[\x21\x22\x24-\x7e\x80-\xff]*)$/.test(path)) throw new LuaError(`'${path}' is not a path`);
    this.#method = method;
    this.#path = path;
    this.#host = checked(':authority', host);
    this.#fields = fields
      .filter(([name]) => !name.startsWith(':') && name !== 'host' && name !== 'content-length')
      .map(([name, value]) => [writable(name), checked(name, value)]);
    this.body = body === undefined || body === '' ? [] : [Buffer.from(body, 'latin1')];
    this.timeoutMs = Math.min(Math.trunc(options.timeoutMs), MAX_TIMEOUT_MS);
    this.#forwardedFor = options.sendsForwardedFor ? ownIp : '';
  }

  writeHead(head: HeaderBlock): void {
    head.setMethod(methodOf(this.#method), this.#method);
    head.setPath(this.#path);
    head.add(HOST, this.#host);
    for (const [key, value] of this.#fields) head.add(key, value);
    head.set(INTERNAL, 'true');
    if (this.#forwardedFor !== '') head.add(FORWARDED_FOR, this.#forwardedFor);
    if (this.timeoutMs > 0) head.set(EXPECTED_TIMEOUT, String(this.timeoutMs));
  }
}

/** Begins the call; `done` gets its outcome, perhaps before this returns. */
export function callCluster(
  calls: CallingThread,
  cluster: Cluster,
  request: LuaCallRequest,
  returnsDuplicates: boolean,
  done: (outcome: CallOutcome) => void,
): HttpCall | undefined {
  return HttpCall.start(calls, cluster, request, new CallEvents(returnsDuplicates, done));
}

/** Calls `start`, and reports an exception as a failed call. */
export function startCall(
  start: (done: (outcome: CallOutcome) => void) => HttpCall | undefined,
  done: (outcome: CallOutcome) => void,
): HttpCall | undefined {
  try {
    return start(done);
  } catch (error) {
    if (error instanceof LuaError) throw error;
    done(FAILURE);
    return undefined;
  }
}

class CallEvents implements HttpCallEvents {
  readonly #returnsDuplicates: boolean;
  readonly #done: (outcome: CallOutcome) => void;
  readonly #fields = new Map<string, string[]>();

  constructor(returnsDuplicates: boolean, done: (outcome: CallOutcome) => void) {
    this.#returnsDuplicates = returnsDuplicates;
    this.#done = done;
  }

  onHead(head: HeaderBlock): void {
    this.#fields.set(':status', [String(head.status)]);
    for (let index = 0; index < head.size; index++) {
      if (head.isRemoved(index)) continue;
      const values = this.#fields.get(head.name(index));
      if (values === undefined) this.#fields.set(head.name(index), [head.value(index)]);
      else values.push(head.value(index));
    }
  }

  onAnswer({ body }: HttpCallAnswer): void {
    const entries: unknown[] = [];
    for (const [name, values] of this.#fields) {
      const isTable = this.#returnsDuplicates && values.length > 1;
      entries.push(name, isTable ? new LuaTable(values.flatMap((value, index) => [index + 1, value])) : values.at(-1));
    }
    this.#done([new LuaTable(entries), body.length === 0 ? null : body.toString('latin1')]);
  }

  onFailure(): void {
    this.#done(FAILURE);
  }
}

/** As Envoy, whose scripts get a response in place of a failure. */
const FAILURE: CallOutcome = [new LuaTable([':status', '503']), 'upstream failure'];

function fieldValue(fields: readonly (readonly [string, string])[], name: string): string | undefined {
  return fields.find(([key]) => key === name)?.[1];
}
