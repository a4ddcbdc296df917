// A pool with simulated transport, stats and limits.

import { Priority } from '../../../src/common/priority.js';
import { DEFAULT_HTTP1_OPTIONS } from '../../../src/http/codec/options.js';
import { h1Client } from '../../../src/http/h1/protocol.js';
import { Memory } from '../../../src/io/memory.js';
import { TimingWheel } from '../../../src/io/time/timing-wheel.js';
import type { ConnectionHandler } from '../../../src/io/transport/connection-handler.js';
import type { Transport } from '../../../src/io/transport/transport.js';
import { ClusterStats, HostStats } from '../../../src/stats/layouts/cluster.js';
import { HttpPool, type PooledCluster, type PoolRequest } from '../../../src/upstream/connections/http-pool.js';

import type { Host } from '../../../src/upstream/hosts/host.js';
import { LIMIT_KINDS, type LimitKind } from '../../../src/upstream/limits.js';

export class FakePool {
  readonly clock = { monotonicMs: 0 };
  readonly stats = new CountedScope(ClusterStats.at);
  readonly hostStats = new CountedScope(HostStats.at);
  /** Acquired slots by kind. */
  readonly held = new Array<number>(LIMIT_KINDS).fill(0);
  /** Open connections by id. */
  readonly handlers = new Map<number, ConnectionHandler>();
  readonly wheel: TimingWheel;
  readonly pool: HttpPool;
  /** No slot of this kind is free. */
  exhausted: LimitKind | undefined;
  /** How often the pool has reported that it is empty. */
  emptied = 0;
  /** What connections begin with; undefined: they are plain. */
  hostTransport: object | undefined;
  /** An error for connect() to throw. */
  connectError: Error | undefined;
  /** The id of the last connection. */
  lastId = 0;

  /** @param perHost connections for each request */
  constructor(perHost = 1) {
    const { clock, handlers, held } = this;
    const transport: Partial<Transport> = {
      connect: (_remote, _from, _limits, handler) => {
        if (this.connectError !== undefined) throw this.connectError;
        handlers.set(++this.lastId, handler);
        return this.lastId;
      },
      setHandler: (id, handler) => void handlers.set(id, handler),
      close: (id) => void handlers.delete(id),
      send: () => {},
      serials: { next: () => this.lastId } as Transport['serials'],
      endsInTurn: () => false,
    };
    const onError = (error: unknown) => {
      throw error;
    };
    this.wheel = new TimingWheel({ nowMs: 0, onError });
    const memory = new Memory();
    const cluster = {
      thread: { transport, memory, clock, wheel: this.wheel },
      spec: {
        ...{ name: 'api', connectTimeoutMs: 5000, idleTimeoutMs: 3_600_000, http1: DEFAULT_HTTP1_OPTIONS },
        preconnect: { perHost, predictive: 1, hosts: undefined },
      },
      connectsAhead: () => true,
      stats: this.stats,
      transportOf: () => this.hostTransport,
      poolEmptied: () => this.emptied++,
      limits: {
        tryAcquire: (kind: LimitKind) => kind !== this.exhausted && ++held[kind]! > 0,
        release: (kind: LimitKind) => void held[kind]!--,
      },
    };
    const protocol = h1Client(memory, DEFAULT_HTTP1_OPTIONS);
    const host = { sockaddr: new Uint8Array(), address: '127.0.0.1:80', stats: this.hostStats };
    this.pool = new HttpPool(cluster as unknown as PooledCluster, host as unknown as Host, Priority.Default, protocol);
  }
}

/** A scope whose stats can be read by name. */
class CountedScope {
  readonly #at: Readonly<Record<string, number>>;
  readonly #values: number[] = [];

  constructor(at: Readonly<Record<string, number>>) {
    this.#at = at;
  }

  increment(index: number): void {
    this.#values[index] = (this.#values[index] ?? 0) + 1;
  }
  decrement(index: number): void {
    this.#values[index] = (this.#values[index] ?? 0) - 1;
  }
  record(): void {}
  addBytes(): void {}

  value(name: string): number {
    return this.#values[this.#at[name]!] ?? 0;
  }
}

/** A queued or running request. */
export class NotedRequest implements PoolRequest {
  /** Its outcome. */
  outcome = 'waits';
  pendingPrev: PoolRequest | undefined;
  pendingNext: PoolRequest | undefined;

  onPoolReady(): void {
    this.outcome = 'ready';
  }
  onPoolFailure(): void {
    this.outcome = 'failed';
  }
  onInformational(): void {}
  onHeaders(): void {}
  onData(): void {}
  onTrailers(): void {}
  onReset(): void {}
  onWriteBlocked(): void {}
  onWriteDrained(): void {}
}
