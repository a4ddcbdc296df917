// Runs health checks on the primary, with a transport for them and a limited number of starts in each turn.

import type { Random } from '../../../common/random.js';
import { credentialsOf } from '../../../extensions/filters/network/redis-proxy/cluster-options.js';
import { textCommand } from '../../../extensions/filters/network/redis-proxy/resp/write.js';
import { GrpcChecker } from '../../../grpc/health-checker.js';
import type { Timers } from '../../../io/time/timing-wheel.js';
import type { Runtime } from '../../../runtime/runtime.js';
import { ClusterStats, HostStats } from '../../../stats/layouts/cluster.js';
import { Http2Stats } from '../../../stats/layouts/http.js';
import type { StatsStore } from '../../../stats/store.js';
import type { CallingThread } from '../../../upstream/calling-thread.js';
import { checkTarget, type UncountedStats } from '../../../upstream/health-checks/check-target.js';
import type { Checker } from '../../../upstream/health-checks/checker.js';
import { HttpChecker } from '../../../upstream/health-checks/http-checker.js';
import { TcpChecker } from '../../../upstream/health-checks/tcp-checker.js';
import { RedisChecker } from '../redis/redis-checker.js';
import { RedisClient } from '../redis/redis-client.js';
import type { CheckerRequest, CheckThread, RedisQuestion } from './check-thread.js';

/** A connection for a question. */
const PLAIN = {
  alpn: new Uint8Array(0),
  transport: undefined,
  reusesConnection: true,
  check: { kind: 'tcp', send: undefined, receive: [] },
} as const;

/** Checks started in one turn: one or two milliseconds of work. The thread serves other events. */
const CHECKS_PER_TURN = 32;

export interface PrimaryCheckThreadContext {
  readonly store: StatsStore;
  readonly timers: Timers;
  readonly random: Random;
  readonly runtime: Runtime;
  /** Returns the thread with which checks connect. */
  readonly calls: () => CallingThread;
  /** Called for unexpected failures. */
  readonly failed: (what: string, error: unknown) => void;
}

export class PrimaryCheckThread implements CheckThread {
  readonly timers: Timers;
  readonly random: Random;
  readonly runtime: Runtime;
  readonly #context: PrimaryCheckThreadContext;
  #uncounted: UncountedStats | undefined;
  #due: (() => void)[] = [];
  #immediate: NodeJS.Immediate | undefined;

  constructor(context: PrimaryCheckThreadContext) {
    const { random, runtime, timers } = context;
    this.#context = context;
    this.timers = timers;
    this.random = random;
    this.runtime = runtime;
  }

  checker({ cluster, endpoint, onChecked, onVerified, spec }: CheckerRequest): Checker {
    const { calls, runtime } = this.#context;
    const caller = calls();
    const { check, reusesConnection, timeoutMs } = spec;
    const target = checkTarget(caller, cluster, spec, endpoint, this.#stats());
    if (check.kind === 'tcp') {
      return new TcpChecker(caller, target, { spec: check, timeoutMs, reusesConnection }, onChecked);
    }
    if (check.kind === 'redis') {
      const credentials = credentialsOf({ spec: cluster });
      return new RedisChecker(caller, target, { spec: check, credentials, timeoutMs, reusesConnection }, onChecked);
    }
    const hostname = endpoint.check?.hostname ?? '';
    if (check.kind === 'grpc') {
      return new GrpcChecker(caller, target, { spec: check, timeoutMs, hostname }, onChecked);
    }
    const verifiesService = runtime.fraction('health_check.verify_cluster', { numerator: 100 });
    return new HttpChecker(
      caller,
      target,
      { spec: check, timeoutMs, hostname, verifiesService, onVerified },
      onChecked,
    );
  }

  ask({ cluster, endpoint, onResult, timeoutMs, words }: RedisQuestion): { close(): void } {
    const caller = this.#context.calls();
    const { connectTimeoutMs } = cluster;
    const target = checkTarget(caller, cluster, { ...PLAIN, timeoutMs: connectTimeoutMs }, endpoint, this.#stats());
    const client = new RedisClient(caller, target, credentialsOf({ spec: cluster }));
    client.request(textCommand(...words), connectTimeoutMs + timeoutMs, (result) => {
      onResult(result);
      client.close();
    });
    return client;
  }

  schedule(begin: () => void): void {
    this.#due.push(begin);
    this.#immediate ??= setImmediate(this.#turn);
  }

  /** Starts no further check. */
  close(): void {
    clearImmediate(this.#immediate);
    this.#due = [];
  }

  readonly #turn = (): void => {
    this.#immediate = undefined;
    for (const begin of this.#due.splice(0, CHECKS_PER_TURN)) {
      try {
        begin();
      } catch (error) {
        this.#context.failed('a health check failed', error);
      }
    }
    if (this.#due.length > 0) this.#immediate ??= setImmediate(this.#turn);
  };

  #stats(): UncountedStats {
    const { store } = this.#context;
    this.#uncounted ??= {
      cluster: store.scope(store.addScope('health_check_connections.', ClusterStats, { hidden: true })),
      host: store.scope(store.addScope('health_check_connections.host.', HostStats, { hidden: true })),
      http2: store.scope(store.addScope('health_check_connections.http2.', Http2Stats, { hidden: true })),
    };
    return this.#uncounted;
  }
}
