// When the nodes of a Redis cluster are asked for its slots, from its configuration.

import { durationMs } from '../common/time/duration.js';
import type { RedisClusterConfig } from '../config/generated/api.js';

export interface RedisDiscoverySettings {
  /** Time between two questions, and that for an answer. */
  readonly refreshMs: number;
  readonly timeoutMs: number;
  /** So many events cause a question; 0: none does. */
  readonly redirections: number;
  readonly failures: number;
  readonly degradedHosts: number;
  /** For so long after such a question, events do not count. */
  readonly pauseMs: number;
}

export function redisSettings(config: RedisClusterConfig): RedisDiscoverySettings {
  return {
    refreshMs: durationMs(config.cluster_refresh_rate, 5000),
    timeoutMs: durationMs(config.cluster_refresh_timeout, 3000),
    redirections: config.redirect_refresh_threshold ?? 5,
    failures: config.failure_refresh_threshold ?? 0,
    degradedHosts: config.host_degraded_refresh_threshold ?? 0,
    pauseMs: durationMs(config.redirect_refresh_interval, 5000),
  };
}
