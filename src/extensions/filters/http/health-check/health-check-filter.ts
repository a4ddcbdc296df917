// The health check filter of one stream: answers a health check or passes it on, and marks the response.

import {
  DataStatus,
  type HeaderBlock,
  type HeaderRule,
  HeadersStatus,
  type HttpFilter,
  headerKey,
  matchesAll,
  ResponseFlag,
  type Scope,
  type StreamControl,
} from '../../../sdk.js';
import type { CachedAnswer } from './cached-answer.js';
import { type ClusterMinimum, ClusterVerdict, judgeClusters } from './cluster-minimum.js';
import { HealthCheckFilterStats } from './stats.js';

/** The compiled configuration, one per filter chain and worker. */
export interface HealthCheckRules {
  /** Hosts answer health checks. */
  readonly passesThrough: boolean;
  /** A request that matches all of them is a health check. */
  readonly headers: readonly HeaderRule[];
  /** The last response of a host; undefined: responses are not cached. */
  readonly cache: CachedAnswer | undefined;
  readonly clusters: readonly ClusterMinimum[];
  /** Whether health checks must fail (POST /healthcheck/fail). */
  readonly health: { readonly isFailing: boolean };
  /** Name of this server's own cluster, as byteText(). */
  readonly serviceCluster: string;
  readonly stats: Scope;
}

const { at } = HealthCheckFilterStats;

const DEGRADED = headerKey('x-envoy-degraded');
const HEALTH_CHECKED_CLUSTER = headerKey('x-envoy-upstream-healthchecked-cluster');
const IMMEDIATE_FAIL = headerKey('x-envoy-immediate-health-check-fail');

export class HealthCheckFilter implements HttpFilter {
  readonly #stream: StreamControl;
  readonly #rules: HealthCheckRules;
  #isHealthCheck = false;
  /** This filter answers, when the request is complete. */
  #isAnswered = false;

  constructor(stream: StreamControl, rules: HealthCheckRules) {
    this.#stream = stream;
    this.#rules = rules;
  }

  decodeHeaders(headers: HeaderBlock, endStream: boolean): HeadersStatus {
    const { cache, headers: matchers, health, passesThrough, stats } = this.#rules;
    if (!matchesAll(matchers, headers)) return HeadersStatus.Continue;
    this.#isHealthCheck = true;
    this.#stream.info.isHealthCheck = true;
    // As in Envoy, the counters are those of the health checks that the filter answers.
    if (passesThrough && !health.isFailing && cache?.isFresh !== true) return HeadersStatus.Continue;
    stats.increment(at.request_total);
    this.#isAnswered = true;
    if (endStream) this.#answer();
    return HeadersStatus.StopIteration;
  }

  decodeData(_offset: number, _length: number, endStream: boolean): DataStatus {
    if (!this.#isAnswered) return DataStatus.Continue;
    if (endStream) this.#answer();
    return DataStatus.StopNoBuffer;
  }

  decodeTrailers(): HeadersStatus {
    if (!this.#isAnswered) return HeadersStatus.Continue;
    this.#answer();
    return HeadersStatus.StopIteration;
  }

  encodeHeaders(headers: HeaderBlock): HeadersStatus {
    const { cache, health, serviceCluster, stats } = this.#rules;
    if (health.isFailing) headers.set(IMMEDIATE_FAIL, 'true');
    if (!this.#isHealthCheck) return HeadersStatus.Continue;
    const { status } = headers;
    const isDegraded = headers.find(DEGRADED) >= 0;
    // A 101 answers only the upgrade that requested it.
    if (!this.#isAnswered) {
      if (status !== 101) cache?.keep(status, isDegraded);
    } else {
      stats.increment(isSuccess(status) ? at.ok : at.failed);
      if (isDegraded) stats.increment(at.degraded);
    }
    headers.set(HEALTH_CHECKED_CLUSTER, serviceCluster);
    return HeadersStatus.Continue;
  }

  #answer(): void {
    const { cache, clusters, health, stats } = this.#rules;
    // Without a cached response this filter answers only because health checks were failing when the request began.
    if (health.isFailing || cache?.status === 0) return this.#reply(503, 'health_check_failed', false);
    if (cache !== undefined) {
      stats.increment(at.cached_response);
      return this.#reply(cache.status, 'health_check_cached', cache.isDegraded);
    }
    if (clusters.length === 0) return this.#reply(200, 'health_check_ok', false);
    switch (judgeClusters(clusters)) {
      case ClusterVerdict.Healthy:
        return this.#reply(200, 'health_check_ok_cluster_healthy', false);
      case ClusterVerdict.NotFound:
        stats.increment(at.failed_cluster_not_found);
        return this.#reply(503, 'health_check_failed_no_cluster_found', false);
      case ClusterVerdict.Empty:
        stats.increment(at.failed_cluster_empty);
        return this.#reply(503, 'health_check_failed_cluster_empty', false);
      case ClusterVerdict.Unhealthy:
        stats.increment(at.failed_cluster_unhealthy);
        return this.#reply(503, 'health_check_failed_cluster_unhealthy', false);
    }
  }

  #reply(status: number, details: string, isDegraded: boolean): void {
    this.#stream.sendLocalReply({
      status,
      body: '',
      details,
      flags: isSuccess(status) ? ResponseFlag.None : ResponseFlag.FailedLocalHealthCheck,
      editHeaders: isDegraded ? addDegraded : undefined,
    });
  }
}

function addDegraded(headers: HeaderBlock): void {
  headers.add(DEGRADED, '');
}

function isSuccess(status: number): boolean {
  return status >= 200 && status < 300;
}
