// Resources: what files and management servers deliver, once it has been read and checked.

import type { SensitiveValue } from '../config/schema/sensitive.js';

/** Kinds of resources, each with a service of its own. */
export type ResourceType =
  | 'listener'
  | 'cluster'
  | 'endpoints'
  | 'route'
  | 'scoped-route'
  | 'virtual-host'
  | 'runtime'
  | 'extension-config';

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
} as const satisfies Record<ResourceType, string>;

/** One that can be used. */
export interface Resource<M = unknown> {
  readonly name: string;
  /** Its own version; that of the update where resources have none. */
  readonly version: string;
  /**
   * In canonical proto JSON form, checked like a static configuration. The same object as before when the bytes are the
   * same: whoever gets it can tell by identity that nothing has changed.
   */
  readonly message: M;
  /** Other names that it was asked for by; of virtual hosts. */
  readonly aliases: readonly string[];
  /** What is not to be shown of it: paths as in LoadResult.sensitive. */
  readonly sensitive: readonly SensitiveValue[];
}

/** One that cannot: the version before it stays in use. */
export interface RefusedResource {
  /** '' when not even its name can be read. */
  readonly name: string;
  readonly version: string;
  /** Everything that is wrong with it, for whoever has sent it. */
  readonly details: string;
  /** As far as it could be read, without what is not to be shown; undefined when it could not. */
  readonly message: unknown;
}

/**
 * Whether there is one that may be any of those that are there already, for its name cannot be read: what an update does not
 * name may be in it then, and is not gone.
 */
export function hidesNames(refused: readonly RefusedResource[]): boolean {
  return refused.some(({ name }) => name === '');
}

/** Which of these names, and of those that it says so of, are gone by an update. */
export function namesGone(
  { isComplete, refused, removed, resources }: Pick<Update, 'isComplete' | 'refused' | 'removed' | 'resources'>,
  known: Iterable<string>,
): Set<string> {
  const gone = new Set(removed);
  if (!isComplete || hidesNames(refused)) return gone;
  const there = new Set([...resources, ...refused].map(({ name }) => name));
  for (const name of known) if (!there.has(name)) gone.add(name);
  return gone;
}

/** What a source says at one time. */
export interface Update<M = unknown> {
  /** Of the whole; '' when there is none. */
  readonly version: string;
  /** State of the world: `resources` and `refused` are all that there are. Otherwise they are what is new. */
  readonly isComplete: boolean;
  readonly resources: readonly Resource<M>[];
  readonly refused: readonly RefusedResource[];
  /** Names of resources that are gone, or whose time to live is over; with isComplete only of the latter. */
  readonly removed: readonly string[];
}
