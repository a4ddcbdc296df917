// A compiled HTTPFault: which requests get a fault, and which fault.

import type { FaultAbort, FaultDelay, HTTPFault } from '../../../../config/generated/api.js';
import {
  compileHeaderRules,
  durationMs,
  type HeaderBlock,
  type HeaderRule,
  MAX_TIMER_MS,
  matchesAll,
  type Random,
  type Runtime,
  type StreamControl,
} from '../../../sdk.js';
import {
  ABORT,
  ABORT_GRPC,
  ABORT_PERCENTAGE,
  DELAY,
  DELAY_PERCENTAGE,
  numberIn,
  SERVICE_CLUSTER,
  SERVICE_NODE,
} from './request-headers.js';
import { FaultNumber, FaultShare } from './runtime-values.js';

/** The response of an aborted request. */
export interface Abort {
  readonly status: number;
  /** Undefined: derived from `status`. */
  readonly grpcStatus: number | undefined;
  readonly body: string;
}

export class FaultRules {
  /** Faults are also counted by downstream cluster. */
  readonly countsClusters: boolean;
  readonly #delay: DelayRule | undefined;
  readonly #abort: AbortRule | undefined;
  readonly #upstreamCluster: string;
  readonly #headers: readonly HeaderRule[] | undefined;
  readonly #nodes: ReadonlySet<string> | undefined;
  readonly #maxActive: FaultNumber;
  readonly #configuredMaxActive: number;

  constructor(config: HTTPFault, runtime: Runtime, where: string) {
    const nodes = config.downstream_nodes ?? [];
    this.countsClusters = config.disable_downstream_cluster_stats !== true;
    this.#delay = config.delay && new DelayRule(config.delay, config, runtime);
    this.#abort = config.abort && new AbortRule(config.abort, config, runtime);
    this.#upstreamCluster = config.upstream_cluster ?? '';
    this.#headers = compileHeaderRules(config.headers, where === '' ? 'headers' : `${where}.headers`);
    this.#nodes = nodes.length === 0 ? undefined : new Set(nodes);
    this.#maxActive = new FaultNumber(runtime, config.max_active_faults_runtime, 'max_active_faults');
    this.#configuredMaxActive = config.max_active_faults ?? Infinity;
  }

  /** No fault is configured. */
  get isEmpty(): boolean {
    return this.#delay === undefined && this.#abort === undefined;
  }

  /** Returns whether the request matches the configured conditions. */
  isFor(headers: HeaderBlock, stream: StreamControl): boolean {
    if (this.#upstreamCluster !== '' && stream.route()?.clusterName !== this.#upstreamCluster) return false;
    if (this.#nodes !== undefined && !this.#nodes.has(headers.get(SERVICE_NODE) ?? '')) return false;
    return this.#headers === undefined || matchesAll(this.#headers, headers);
  }

  /** Maximum active faults in the whole process. */
  get maxActive(): number {
    return this.#maxActive.valueFor('', this.#configuredMaxActive);
  }

  /** Returns the delay of this request in ms; 0: none. */
  delayOf(headers: HeaderBlock, cluster: string, random: Random): number {
    return this.#delay?.of(headers, cluster, random) ?? 0;
  }

  /** Returns the abort of this request; undefined: none. */
  abortOf(headers: HeaderBlock, cluster: string, random: Random): Abort | undefined {
    return this.#abort?.of(headers, cluster, random);
  }
}

/** Returns the downstream cluster that the request names, or ''. */
export function clusterOf(headers: HeaderBlock): string {
  return headers.get(SERVICE_CLUSTER) ?? '';
}

class DelayRule {
  readonly #share: FaultShare;
  readonly #runtimeMs: FaultNumber;
  readonly #isByHeader: boolean;
  readonly #fixedMs: number | undefined;

  constructor({ fixed_delay: fixed, header_delay, percentage }: FaultDelay, keys: HTTPFault, runtime: Runtime) {
    this.#share = new FaultShare(runtime, keys.delay_percent_runtime, 'delay.fixed_delay_percent', percentage);
    this.#runtimeMs = new FaultNumber(runtime, keys.delay_duration_runtime, 'delay.fixed_duration_ms');
    this.#isByHeader = header_delay !== undefined;
    // As in Envoy, in whole milliseconds.
    this.#fixedMs = fixed === undefined ? undefined : Math.trunc(durationMs(fixed));
  }

  of(headers: HeaderBlock, cluster: string, random: Random): number {
    const wanted = this.#isByHeader ? numberIn(headers, DELAY_PERCENTAGE) : undefined;
    if (!this.#share.isHit(random, cluster, wanted)) return 0;
    const configuredMs = this.#isByHeader ? numberIn(headers, DELAY) : this.#fixedMs;
    if (configuredMs === undefined) return 0;
    return Math.min(this.#runtimeMs.valueFor(cluster, configuredMs), MAX_TIMER_MS);
  }
}

class AbortRule {
  readonly #share: FaultShare;
  readonly #runtimeStatus: FaultNumber;
  readonly #runtimeGrpcStatus: FaultNumber;
  /** Without both, the request's headers set the status. */
  readonly #status: number | undefined;
  readonly #grpcStatus: number | undefined;
  readonly #isByHeader: boolean;
  readonly #body: string;

  constructor(config: FaultAbort, keys: HTTPFault, runtime: Runtime) {
    const { grpc_status, header_abort, http_status, percentage, response_body } = config;
    this.#share = new FaultShare(runtime, keys.abort_percent_runtime, 'abort.abort_percent', percentage);
    this.#runtimeStatus = new FaultNumber(runtime, keys.abort_http_status_runtime, 'abort.http_status');
    this.#runtimeGrpcStatus = new FaultNumber(runtime, keys.abort_grpc_status_runtime, 'abort.grpc_status');
    this.#status = http_status;
    this.#grpcStatus = grpc_status;
    this.#isByHeader = header_abort !== undefined;
    this.#body = response_body || 'fault filter abort';
  }

  of(headers: HeaderBlock, cluster: string, random: Random): Abort | undefined {
    const isByHeader = this.#isByHeader;
    const wanted = isByHeader ? numberIn(headers, ABORT_PERCENTAGE) : undefined;
    if (!this.#share.isHit(random, cluster, wanted)) return undefined;
    const status = isByHeader ? numberIn(headers, ABORT) : this.#status;
    if (status !== undefined && isStatus(status)) {
      const other = this.#runtimeStatus.valueFor(cluster, status);
      // A runtime value that is not a response status is ignored.
      return { status: isStatus(other) ? other : status, grpcStatus: undefined, body: this.#body };
    }
    const grpcStatus = isByHeader ? numberIn(headers, ABORT_GRPC) : this.#grpcStatus;
    if (grpcStatus === undefined || (isByHeader && grpcStatus > LAST_GRPC_STATUS)) return undefined;
    return { status: 200, grpcStatus: this.#runtimeGrpcStatus.valueFor(cluster, grpcStatus), body: this.#body };
  }
}

const LAST_GRPC_STATUS = 16;

function isStatus(status: number): boolean {
  return status >= 200 && status < 600;
}
