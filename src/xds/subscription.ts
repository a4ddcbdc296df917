// The interface between the server's parts and configuration sources.

import type { ConfigSource } from '../config/generated/api.js';
import type { AnswerGate } from './answer-gate.js';
import type { ResourceType, Update } from './resource.js';

/** A valid resource that cannot be used. */
export interface Rejection {
  readonly name: string;
  readonly details: string;
}

/** An update that is applied in steps. */
export type StepwiseUpdate = Generator<void, readonly Rejection[]>;

/** The subscriber's callbacks. */
export interface Watcher<M = unknown> {
  /**
   * Applies an update. Returns the rejections; all other resources are in use from then on. Rejections, and `refused` of the
   * update, are answered with a NACK; the rest of the update is accepted. Long work is done in steps, between which the thread
   * handles other events; no other callback comes before the last step.
   */
  update(update: Update<M>): readonly Rejection[] | StepwiseUpdate;
  /**
   * Called at most once, when nothing has arrived within initial_fetch_timeout. The subscriber proceeds without resources; an
   * update may still follow.
   */
  fetchTimedOut(): void;
}

/** Applies a watcher's result in its steps. */
export function* stepsOf(taken: readonly Rejection[] | StepwiseUpdate): StepwiseUpdate {
  return isDone(taken) ? taken : yield* taken;
}

function isDone(taken: readonly Rejection[] | StepwiseUpdate): taken is readonly Rejection[] {
  return Array.isArray(taken);
}

/** Names of resources; '*': all. A set with '*' subscribes to all, and to its other names in particular. */
export type ResourceNames = ReadonlySet<string> | '*';

/** Returns whether all resources are subscribed. */
export function includesAll(names: ResourceNames): boolean {
  return names === '*' || names.has('*');
}

/** Returns whether this resource is subscribed. */
export function includesName(names: ResourceNames, name: string): boolean {
  return names === '*' || names.has('*') || names.has(name);
}

export interface Subscription {
  /** Replaces the subscribed names. */
  setNames(names: ResourceNames): void;
  /** Ends the subscription; no callback follows. */
  close(): void;
}

export interface SubscriptionRequest<M = unknown> {
  /** path or path_config_source, api_config_source, ads or self. */
  readonly source: ConfigSource;
  readonly type: ResourceType;
  readonly names: ResourceNames;
  /** Prefix of its stats, with the final dot: `cluster_manager.cds.`, `http.ingress.rds.local_routes.` */
  readonly statPrefix: string;
  readonly watcher: Watcher<M>;
  /** With `ads`: ACKs wait while it is closed. */
  readonly gate?: AnswerGate;
}

/** All configuration sources: files, and management servers over gRPC. */
export interface ConfigSources {
  /** Begins a subscription. The watcher is never called before this returns. */
  subscribe<M>(request: SubscriptionRequest<M>): Subscription;
}
