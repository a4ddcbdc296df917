// ctx.fetch(): a call to a cluster. Pools, timeouts, circuit breakers and stats are those of the cluster.

import type { FetchInit, FetchResponse } from '../../api/index.js';
import {
  byteText,
  type CallingThread,
  type ClusterManager,
  type HeaderBlock,
  HttpCall,
  type HttpCallAnswer,
  type HttpCallEvents,
  type HttpCallRequest,
  methodOf,
} from '../sdk.js';
import { keyOf, writableKey } from './header-keys.js';
import { bytesOf, textOfHead } from './text.js';

const DEFAULT_TIMEOUT_MS = 5000;
/** The longest timer. */
const MAX_TIMEOUT_MS = 2 ** 31 - 1;

const HOST = keyOf('host');

/** The calls of one stream, which end with it. */
export interface StreamCalls {
  /** Rejects when there is no response. */
  fetch(cluster: string, path: string, init: FetchInit): Promise<FetchResponse>;
  /** Cancels the calls that have no response yet: their promises stay pending. */
  cancel(): void;
}

export class ClusterCalls implements StreamCalls {
  readonly #calls: CallingThread;
  readonly #clusters: ClusterManager;
  readonly #running = new Set<HttpCall>();

  constructor(calls: CallingThread, clusters: ClusterManager) {
    this.#calls = calls;
    this.#clusters = clusters;
  }

  fetch(cluster: string, path: string, init: FetchInit): Promise<FetchResponse> {
    return new Promise((resolve, reject) => {
      const target = this.#clusters.find(cluster)?.current;
      if (target === undefined) throw new Error(`fetch: there is no cluster '${cluster}'`);
      const request = new FetchRequest(cluster, path, init);
      let call: HttpCall | undefined;
      const events: HttpCallEvents = new FetchEvents((outcome) => {
        if (call !== undefined) this.#running.delete(call);
        if (typeof outcome === 'string') reject(new Error(`fetch from '${cluster}': ${outcome}`));
        else resolve(outcome);
      });
      call = HttpCall.start(this.#calls, target, request, events);
      if (call !== undefined && init.keepalive !== true) this.#running.add(call);
    });
  }

  cancel(): void {
    for (const call of this.#running) call.cancel();
    this.#running.clear();
  }
}

class FetchRequest implements HttpCallRequest {
  readonly body: readonly Uint8Array[];
  readonly timeoutMs: number;
  readonly #cluster: string;
  readonly #path: string;
  readonly #method: string;
  readonly #fields: readonly (readonly [name: string, value: string])[];

  constructor(
    cluster: string,
    path: string,
    { body, headers = {}, method, timeoutMs = DEFAULT_TIMEOUT_MS }: FetchInit,
  ) {
    const bytes = body === undefined ? undefined : bytesOf(body);
    if (!(timeoutMs > 0)) throw new RangeError(`fetch: ${timeoutMs} ms is no timeout`);
    this.#cluster = cluster;
    this.#path = path;
    this.#method = method ?? (bytes === undefined ? 'GET' : 'POST');
    this.#fields = Object.entries(headers);
    this.body = bytes === undefined || bytes.length === 0 ? [] : [bytes];
    this.timeoutMs = Math.min(timeoutMs, MAX_TIMEOUT_MS);
  }

  writeHead(head: HeaderBlock): void {
    head.setMethod(methodOf(this.#method), this.#method);
    head.setPath(byteText(this.#path));
    head.add(HOST, byteText(this.#cluster));
    for (const [name, value] of this.#fields) head.set(writableKey(name), byteText(value));
  }
}

class FetchEvents implements HttpCallEvents {
  readonly #headers = new Map<string, string>();
  readonly #done: (outcome: FetchResponse | string) => void;

  /** `done` gets the response, or why there is none. */
  constructor(done: (outcome: FetchResponse | string) => void) {
    this.#done = done;
  }

  onHead(block: HeaderBlock): void {
    for (let i = 0; i < block.size; i++) {
      if (block.isRemoved(i)) continue;
      const name = block.name(i);
      const value = textOfHead(block.value(i));
      const before = this.#headers.get(name);
      this.#headers.set(name, before === undefined ? value : `${before}, ${value}`);
    }
  }

  onAnswer({ body, status }: HttpCallAnswer): void {
    this.#done({
      status,
      ok: status >= 200 && status < 300,
      headers: this.#headers,
      bytes: () => body,
      text: () => body.toString(),
      json: () => JSON.parse(body.toString()),
    });
  }

  onFailure(reason: string): void {
    this.#done(reason);
  }
}
