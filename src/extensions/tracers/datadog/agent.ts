// The Datadog agent: receives traces, and answers with the rates at which to keep traces.

import {
  type CallingThread,
  type ClusterReference,
  HttpCall,
  type HttpCallRequest,
  headerKey,
  Method,
  releaseNumber,
} from '../../sdk.js';
import { MsgpackWriter } from './msgpack.js';

const PATH = '/v0.4/traces';
const TIMEOUT_MS = 2000;
const HOST = headerKey('host');
const HEADERS = {
  'content-type': 'application/msgpack',
  'datadog-meta-lang': 'nodejs',
  'datadog-meta-lang-version': process.versions.node,
  'datadog-meta-tracer-version': releaseNumber(),
};
const KEYS = Object.entries(HEADERS).map(([name, value]) => [headerKey(name), value] as const);
const COUNT = headerKey('x-datadog-trace-count');

export interface AgentEvents {
  sent(): void;
  dropped(): void;
  failed(): void;
  /** The cluster does not exist. */
  skipped(): void;
}

export class Agent {
  /** The rate at which traces that begin here are kept, 0 to 1. */
  rate = 1;
  readonly #calls: CallingThread;
  readonly #cluster: ClusterReference;
  readonly #host: string;
  readonly #rateKeys: readonly string[];
  readonly #events: AgentEvents;

  constructor(cluster: string, host: string, service: string, calls: CallingThread, events: AgentEvents) {
    this.#calls = calls;
    this.#cluster = calls.reference(cluster);
    this.#host = host;
    this.#rateKeys = [`service:${service},env:`, 'service:,env:'];
    this.#events = events;
  }

  send(traces: readonly Uint8Array[], done: (failure: string) => void): void {
    const { current: cluster } = this.#cluster;
    if (cluster === undefined) {
      this.#events.skipped();
      return done('the cluster does not exist');
    }
    const writer = new MsgpackWriter();
    writer.array(traces.length);
    for (const trace of traces) writer.raw(trace);
    const request: HttpCallRequest = {
      writeHead: (head) => {
        head.setMethod(Method.Post, 'POST');
        head.setPath(PATH);
        head.add(HOST, this.#host);
        for (const [key, value] of KEYS) head.add(key, value);
        head.add(COUNT, String(traces.length));
      },
      body: [writer.finish()],
      timeoutMs: TIMEOUT_MS,
    };
    HttpCall.start(this.#calls, cluster, request, {
      onAnswer: ({ body, status }) => {
        if (status !== 200) {
          this.#events.dropped();
          return done(`it has answered with status ${status}`);
        }
        this.#events.sent();
        this.#learn(body);
        done('');
      },
      onFailure: (reason) => {
        this.#events.failed();
        done(reason);
      },
    });
  }

  #learn(body: Buffer): void {
    let answer: { readonly rate_by_service?: Readonly<Record<string, unknown>> } | null;
    try {
      answer = JSON.parse(body.toString());
    } catch {
      // Older agents answer "OK".
      return;
    }
    for (const key of this.#rateKeys) {
      const rate = answer?.rate_by_service?.[key];
      if (typeof rate !== 'number' || !(rate >= 0 && rate <= 1)) continue;
      this.rate = rate;
      return;
    }
  }
}
