// The event stream for circuit breaker dashboards: two events per cluster at each flush, to all clients. Without clients a flush
// does nothing.

import type { FlushedStats, PrimaryContext, StatsSink } from '../../sdk.js';
import { EventClient } from './event-client.js';
import { eventText, KEEP_ALIVE } from './event-text.js';
import { outcomesOf, RollingWindow } from './rolling-window.js';

const DEFAULT_BUCKETS = 10;
/** Clusters whose events are sent in one piece. */
const CLUSTERS_PER_PIECE = 32;

const HEADERS = {
  'cache-control': 'no-cache',
  connection: 'close',
  'access-control-allow-headers': 'Accept, Cache-Control, X-Requested-With, Last-Event-ID',
  'access-control-allow-origin': '*',
  'no-chunks': '0',
};

export class CircuitEvents implements StatsSink {
  readonly #buckets: number;
  readonly #context: PrimaryContext;
  readonly #clients = new Set<EventClient>();
  #windows = new Map<string, RollingWindow>();

  /** `buckets` is the length of the rolling window in flushes; 0: the default of 10. */
  constructor(buckets: number, context: PrimaryContext) {
    this.#buckets = buckets > 0 ? buckets : DEFAULT_BUCKETS;
    this.#context = context;
    context.serveEvents({
      path: '/circuit_event_stream',
      aliases: ['/hystrix_event_stream'],
      help: 'send circuit breaker event stream',
      headers: HEADERS,
      open: () => this.#open(),
    });
  }

  *flush(stats: FlushedStats): Generator<void, void> {
    for (const client of this.#clients) client.begin();
    if (this.#clients.size === 0) return;
    const windows = new Map<string, RollingWindow>();
    let text = '';
    let count = 0;
    for (const cluster of this.#context.clusters()) {
      const { name, statsPrefix } = cluster;
      const outcomes = outcomesOf(stats, statsPrefix);
      let window = this.#windows.get(name);
      if (window === undefined) window = new RollingWindow(this.#buckets, outcomes);
      else window.push(outcomes);
      windows.set(name, window);
      const latency = stats.interval(`${statsPrefix}upstream_rq_time`);
      const { flushIntervalMs } = this.#context;
      text += eventText({ ...cluster, outcomes: window.outcomes, latency, flushIntervalMs }, stats.times.nowMs);
      if (++count % CLUSTERS_PER_PIECE !== 0) continue;
      this.#send(text);
      text = '';
      yield;
    }
    this.#windows = windows;
    this.#send(text + KEEP_ALIVE);
  }

  close(): void {
    for (const client of this.#clients) client.end();
  }

  #open(): AsyncIterable<Uint8Array> {
    const client = new EventClient(() => {
      this.#clients.delete(client);
      // The next client starts with new windows.
      if (this.#clients.size === 0) this.#windows = new Map();
    });
    this.#clients.add(client);
    return client;
  }

  #send(text: string): void {
    const piece = Buffer.from(text);
    for (const client of this.#clients) client.put(piece);
  }
}
