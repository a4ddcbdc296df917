// Renders the two events of a cluster, with the fields that dashboards expect, in Envoy's order.

import type { Distribution } from '../../sdk.js';
import type { Outcomes } from './rolling-window.js';

export interface ClusterEvent {
  readonly name: string;
  readonly outcomes: Outcomes;
  /** Request durations in ms since the previous flush. */
  readonly latency: Distribution | undefined;
  readonly maxPendingRequests: number;
  readonly hosts: number;
  readonly flushIntervalMs: number;
}

const QUANTILES = [0, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.995, 1];
const PERCENTS = ['0', '25', '50', '75', '90', '95', '99', '99.5', '100'];

/** A comment that keeps idle connections alive. */
export const KEEP_ALIVE = ':\n\n';

export function eventText(event: ClusterEvent, nowMs: number): string {
  return `data: ${commandJson(event, nowMs)}\n\ndata: ${threadPoolJson(event)}\n\n`;
}

function commandJson(event: ClusterEvent, nowMs: number): string {
  const { success, errors, timeouts, rejected, total } = event.outcomes;
  return JSON.stringify({
    type: 'HystrixCommand',
    name: event.name,
    group: 'NA',
    currentTime: Math.floor(nowMs / 1000),
    isCircuitBreakerOpen: false,
    errorPercentage: total === 0 ? 0 : Math.floor((100 * (errors + timeouts + rejected)) / total),
    errorCount: errors,
    requestCount: total,
    rollingCountCollapsedRequests: 0,
    rollingCountExceptionsThrown: 0,
    rollingCountFailure: errors,
    rollingCountFallbackFailure: 0,
    rollingCountFallbackRejection: 0,
    rollingCountFallbackSuccess: 0,
    rollingCountResponsesFromCache: 0,
    rollingCountSemaphoreRejected: rejected,
    rollingCountShortCircuited: 0,
    rollingCountSuccess: success,
    rollingCountThreadPoolRejected: 0,
    rollingCountTimeout: timeouts,
    rollingCountBadRequests: 0,
    currentConcurrentExecutionCount: 0,
    latencyExecute_mean: 'null',
    latencyExecute: latencies(event.latency),
    propertyValue_circuitBreakerRequestVolumeThreshold: 0,
    propertyValue_circuitBreakerSleepWindowInMilliseconds: 0,
    propertyValue_circuitBreakerErrorThresholdPercentage: 0,
    propertyValue_circuitBreakerForceOpen: false,
    propertyValue_circuitBreakerForceClosed: true,
    propertyValue_executionIsolationStrategy: 'SEMAPHORE',
    propertyValue_executionIsolationThreadTimeoutInMilliseconds: 0,
    propertyValue_executionIsolationThreadInterruptOnTimeout: false,
    propertyValue_executionIsolationSemaphoreMaxConcurrentRequests: event.maxPendingRequests,
    propertyValue_fallbackIsolationSemaphoreMaxConcurrentRequests: 0,
    propertyValue_requestCacheEnabled: false,
    propertyValue_requestLogEnabled: true,
    reportingHosts: event.hosts,
    propertyValue_metricsRollingStatisticalWindowInMilliseconds: event.flushIntervalMs,
  });
}

function threadPoolJson(event: ClusterEvent): string {
  return JSON.stringify({
    currentPoolSize: 0,
    rollingMaxActiveThreads: 0,
    currentActiveCount: 0,
    currentCompletedTaskCount: 0,
    propertyValue_queueSizeRejectionThreshold: event.maxPendingRequests,
    type: 'HystrixThreadPool',
    reportingHosts: event.hosts,
    propertyValue_metricsRollingStatisticalWindowInMilliseconds: event.flushIntervalMs,
    name: event.name,
    currentLargestPoolSize: 0,
    currentCorePoolSize: 0,
    currentQueueSize: 0,
    currentTaskCount: 0,
    rollingCountThreadsExecuted: 0,
    currentMaximumPoolSize: 0,
  });
}

/** Returns milliseconds by percentile; 0 without measurements. */
function latencies(latency: Distribution | undefined): { readonly [percent: string]: number } {
  const values = latency?.quantiles(QUANTILES) ?? [];
  return Object.fromEntries(PERCENTS.map((percent, i) => [percent, values[i] || 0]));
}
