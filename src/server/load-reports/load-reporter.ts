// Reports the load of clusters to the load reporting service (LRS): one stream, in which the service says for which clusters and
// how often, and the server sends what their hosts have counted since the previous report.

import { messageOf } from '../../common/errors/errors.js';
import { ProtobufWriter } from '../../common/protobuf-writer.js';
import { MAX_TIMER_MS } from '../../common/time/max-timer.js';
import { nextTurn } from '../../common/time/next-turn.js';
import type { ApiConfigSource, Node } from '../../config/generated/api.js';
import { encodeJson, loadMessages } from '../../config/schema/messages.js';
import type { GrpcCall } from '../../grpc/grpc-call.js';
import { monotonicMs } from '../../io/time/timer-driver.js';
import { LoadReporterStats } from '../../stats/layouts/load-reporter.js';
import type { StatsStore } from '../../stats/store.js';
import type { Scope, ScopeRef } from '../../stats/thread-stats.js';
import type { CallingThread } from '../../upstream/calling-thread.js';
import { ServiceStream } from '../service-stream.js';
import { HostLoads, type ReportedCluster } from './host-loads.js';

const METHOD = '/envoy.service.load_stats.v3.LoadReportingService/StreamLoadStats';
const REQUEST = 'envoy.service.load_stats.v3.LoadStatsRequest';
const RESPONSE = 'envoy.service.load_stats.v3.LoadStatsResponse';
const CLUSTER_STATS = 'envoy.config.endpoint.v3.ClusterStats';
/** The field LoadStatsRequest.cluster_stats. */
const CLUSTER_STATS_FIELD = 2;

const ALL_CLUSTERS = 'envoy.lrs.supports_send_all_clusters';
/** As in Envoy. */
const RETRY_MS = 5000;
/** Lower limit of the interval, whatever the service requests: a report walks over all hosts. */
const MIN_INTERVAL_MS = 100;

export interface LoadReporterOptions {
  /** `load_stats_config` */
  readonly source: ApiConfigSource;
  readonly node: Node;
  readonly calls: CallingThread;
  readonly store: StatsStore;
  /** The active clusters, by name. */
  readonly clusters: ReadonlyMap<string, ReportedCluster>;
  /** Called for an internal error. */
  failed(what: string, error: unknown): void;
}

/** A LoadStatsResponse; numbers of 64 bits are numbers. */
interface LoadStatsResponse {
  readonly clusters?: readonly string[];
  readonly send_all_clusters?: boolean;
  readonly load_reporting_interval?: { readonly seconds?: number; readonly nanos?: number };
  readonly report_endpoint_granularity?: boolean;
}

/** What the service has requested. */
interface Requested {
  /** The names of the clusters, which may not exist yet; undefined: all. */
  readonly names: ReadonlySet<string> | undefined;
  readonly intervalMs: number;
  readonly showsEndpoints: boolean;
}

export class LoadReporter {
  readonly #options: LoadReporterOptions;
  readonly #stream: ServiceStream;
  readonly #types;
  /** The encoded LoadStatsRequest without cluster_stats. */
  readonly #head: Uint8Array;
  readonly #loads: HostLoads;
  readonly #scope: ScopeRef;
  readonly #stats: Scope;
  /** Undefined before the first response of the service. */
  #requested: Requested | undefined;
  /** The requested clusters that exist, with the monotonic ms of their previous report. */
  #measured = new Map<string, number>();
  /** Those of them whose earlier counts are to be left out. */
  readonly #added = new Set<string>();
  #timer: NodeJS.Timeout | undefined;
  /** Number of the current work; older work stops at its next step. */
  #work = 0;

  constructor(options: LoadReporterOptions) {
    this.#options = options;
    const { calls, node, source, store } = options;
    this.#stream = new ServiceStream({
      service: source.grpc_services![0]!,
      calls,
      method: METHOD,
      purpose: 'load reports to',
      retryMs: () => RETRY_MS,
      opened: () => this.#report(),
      received: (message) => this.#receive(message),
      lost: () => this.#lost(),
      failed: options.failed,
    });
    this.#types = loadMessages(REQUEST, RESPONSE, CLUSTER_STATS);
    const client_features = [...(node.client_features ?? []), ALL_CLUSTERS];
    this.#head = encodeJson(this.#types[REQUEST], { node: { ...node, client_features } });
    this.#loads = new HostLoads(store);
    this.#scope = store.addScope('load_reporter.', LoadReporterStats);
    this.#stats = store.scope(this.#scope);
  }

  /** Opens the stream. */
  start(): void {
    this.#stream.open();
  }

  close(): void {
    this.#stream.close();
    this.#stopWork();
    this.#options.store.removeScope(this.#scope);
  }

  #lost(): void {
    this.#stopWork();
    this.#stats.increment(LoadReporterStats.at.errors);
    this.#stats.increment(LoadReporterStats.at.retries);
  }

  #stopWork(): void {
    this.#work++;
    clearTimeout(this.#timer);
  }

  #receive(message: Buffer): void {
    const type = this.#types[RESPONSE];
    try {
      this.#requested = requestedBy(type.toObject(type.decode(message), { longs: Number }) as LoadStatsResponse);
    } catch (error) {
      return this.#stream.lose(`an unreadable response: ${messageOf(error)}`);
    }
    this.#stats.increment(LoadReporterStats.at.requests);
    this.#beginInterval(this.#requested);
    void this.#inTurns(this.#skipAdded());
  }

  /** Selects the clusters of the next report: some may be new, and others removed. */
  #beginInterval({ intervalMs, names }: Requested): void {
    const before = this.#measured;
    const nowMs = monotonicMs();
    this.#measured = new Map();
    for (const name of this.#options.clusters.keys()) {
      if (names?.has(name) === false) continue;
      const sinceMs = before.get(name);
      if (sinceMs === undefined) this.#added.add(name);
      this.#measured.set(name, sinceMs ?? nowMs);
    }
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#stream.guard(() => this.#report()), intervalMs);
  }

  *#skipAdded(): Generator<void, void> {
    for (const name of this.#added) {
      const cluster = this.#options.clusters.get(name);
      if (cluster !== undefined) yield* this.#loads.skip(cluster);
      this.#added.delete(name);
    }
  }

  /** Sends what was counted since the previous report, and begins the next interval. The first report may have nothing to say. */
  #report(): void {
    const { call, isBlocked } = this.#stream;
    if (call === undefined) return;
    if (isBlocked && this.#requested !== undefined) this.#beginInterval(this.#requested);
    else void this.#inTurns(this.#send(call));
  }

  /** If other work replaces this one, nothing counts as reported. */
  *#send(call: GrpcCall): Generator<void, void> {
    yield* this.#skipAdded();
    this.#loads.begin();
    const showsEndpoints = this.#requested?.showsEndpoints ?? false;
    const reportedMs = new Map<string, number>();
    const writer = new ProtobufWriter();
    for (const [name, sinceMs] of this.#measured) {
      const cluster = this.#options.clusters.get(name);
      if (cluster === undefined) continue;
      const nowMs = monotonicMs();
      reportedMs.set(name, nowMs);
      const stats = yield* this.#loads.report(cluster, showsEndpoints);
      const type = this.#types[CLUSTER_STATS];
      const message = type.fromObject({ ...stats, load_report_interval: durationOf(nowMs - sinceMs) });
      writer.bytes(CLUSTER_STATS_FIELD, type.encode(message).finish());
      yield;
    }
    call.write(Buffer.concat([this.#head, writer.copy()]));
    this.#loads.sent();
    for (const [name, ms] of reportedMs) this.#measured.set(name, ms);
    this.#stats.increment(LoadReporterStats.at.responses);
    if (this.#requested === undefined) return;
    this.#beginInterval(this.#requested);
    yield* this.#skipAdded();
  }

  /** Does the work in steps, unless other work replaces it. A failure is reported, and ends the stream, which is opened again. */
  async #inTurns(steps: Iterator<void>): Promise<void> {
    const work = ++this.#work;
    try {
      while (work === this.#work && steps.next().done !== true) await nextTurn();
    } catch (error) {
      this.#stream.fail(error);
    }
  }
}

function requestedBy(response: LoadStatsResponse): Requested {
  const { clusters = [], send_all_clusters: all = false } = response;
  const { nanos = 0, seconds = 0 } = response.load_reporting_interval ?? {};
  return {
    names: all ? undefined : new Set(clusters),
    intervalMs: Math.min(MAX_TIMER_MS, Math.max(MIN_INTERVAL_MS, seconds * 1000 + nanos / 1e6)),
    showsEndpoints: response.report_endpoint_granularity ?? false,
  };
}

function durationOf(ms: number): { seconds: number; nanos: number } {
  const seconds = Math.floor(ms / 1000);
  return { seconds, nanos: Math.floor((ms - seconds * 1000) * 1e6) };
}
