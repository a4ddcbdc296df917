// Resources from files and management servers, after they have been read and checked.

import type { SensitiveValue } from '../config/schema/sensitive.js';

/** The types of resources, each with its own discovery service. */
export type ResourceType =
  | 'listener'
  | 'cluster'
  | 'endpoints'
  | 'route'
  | 'scoped-route'
  | 'virtual-host'
  | 'runtime'
  | 'extension-config'
  | 'secret';

/** Full names of the messages. */
export const RESOURCE_MESSAGES = {
  listener: 'envoy.config.listener.v3.Listener',
  cluster: 'envoy.config.cluster.v3.Cluster',
  endpoints: 'envoy.config.endpoint.v3.ClusterLoadAssignment',
  route: 'envoy.config.route.v3.RouteConfiguration',
  'scoped-route': 'envoy.config.route.v3.ScopedRouteConfiguration',
  'virtual-host': 'envoy.config.route.v3.VirtualHost',
  runtime: 'envoy.service.runtime.v3.Runtime',
  'extension-config': 'envoy.config.core.v3.TypedExtensionConfig',
  secret: 'envoy.extensions.transport_sockets.tls.v3.Secret',
} as const satisfies Record<ResourceType, string>;

/** A usable resource. */
export interface Resource<M = unknown> {
  readonly name: string;
  /** Its own version, or else that of the update. */
  readonly version: string;
  /**
   * In canonical proto JSON form, checked like a static configuration. Equal bytes yield the same object, so its identity shows
   * whether anything has changed.
   */
  readonly message: M;
  /** Other names by which a virtual host was requested. */
  readonly aliases: readonly string[];
  /** Its sensitive values: paths as in LoadResult.sensitive. */
  readonly sensitive: readonly SensitiveValue[];
}

/** A refused resource. The previous version stays in use. */
export interface RefusedResource {
  /** '' when its name cannot be read. */
  readonly name: string;
  readonly version: string;
  /** All its errors, for its sender. */
  readonly details: string;
  /** The readable part, redacted; undefined when unreadable. */
  readonly message: unknown;
}

/**
 * Returns whether the name of a refused resource cannot be read. It may be any known resource, so resources missing from the
 * update must not count as removed.
 */
export function hasUnnamed(refused: readonly RefusedResource[]): boolean {
  return refused.some(({ name }) => name === '');
}

/** Returns the names that the update removes: from `known`, if the update is complete, and from `removed`. */
export function removedNames(
  { isComplete, refused, removed, resources }: Pick<Update, 'isComplete' | 'refused' | 'removed' | 'resources'>,
  known: Iterable<string>,
): Set<string> {
  const gone = new Set(removed);
  if (!isComplete || hasUnnamed(refused)) return gone;
  const there = new Set([...resources, ...refused].map(({ name }) => name));
  for (const name of known) if (!there.has(name)) gone.add(name);
  return gone;
}

/** An update from a source. */
export interface Update<M = unknown> {
  /** Version of the update; '' when it has none. */
  readonly version: string;
  /** `resources` and `refused` are all that exist (state of the world). Otherwise they are the changes. */
  readonly isComplete: boolean;
  readonly resources: readonly Resource<M>[];
  readonly refused: readonly RefusedResource[];
  /** Names of removed or expired resources; with isComplete only of expired ones. */
  readonly removed: readonly string[];
}
