// Connections that are opened before requests need them: preconnect_policy of clusters.

import type { Cluster_PreconnectPolicy, MetadataMatcher } from '../../config/generated/api.js';

/** How many connections are opened in advance at once, as in Envoy. */
export const MAX_AHEAD = 3;

/** Plain data. */
export interface PreconnectSpec {
  /** Connections of a host for each of its requests; 1: none in advance. */
  readonly perHost: number;
  /** Connections of the cluster for each of its requests, at the hosts that are picked next; 1: none in advance. */
  readonly predictive: number;
  /** The hosts that are connected in advance; undefined: all. */
  readonly hosts: MetadataMatcher | undefined;
}

/** Returns undefined for a cluster that connects when requests need it. */
export function preconnectSpec(config: Cluster_PreconnectPolicy | undefined): PreconnectSpec | undefined {
  const perHost = Number(config?.per_upstream_preconnect_ratio ?? 1);
  const predictive = Number(config?.predictive_preconnect_ratio ?? 1);
  if (perHost <= 1 && predictive <= 1) return undefined;
  return { perHost, predictive, hosts: config?.preconnect_enabled_metadata };
}

/** Requests, and what connections can take, of a pool or of a cluster on one worker. */
export interface StreamCounts {
  /** Requests that wait for a connection. */
  pending: number;
  /** Requests on connections. */
  active: number;
  /** Requests that connections, also those that are being made, can take besides. */
  free: number;
}

/** Returns whether another connection is needed, with `coming` requests besides those that are counted. */
export function needsConnection({ active, free, pending }: StreamCounts, ratio: number, coming: number): boolean {
  return (pending + active + coming) * ratio > free + active;
}
