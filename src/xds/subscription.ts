// What a part of the server asks of a source of configuration, and what it is told.

import type { ConfigSource } from '../config/generated/api.js';
import type { AnswerGate } from './answer-gate.js';
import type { ResourceType, Update } from './resource.js';

/** A resource that was right by itself and still cannot be used. */
export interface Rejection {
  readonly name: string;
  readonly details: string;
}

/** An update that is taken in steps. */
export type StepwiseUpdate = Generator<void, readonly Rejection[]>;

/** Who wants resources. */
export interface Watcher<M = unknown> {
  /**
   * Takes what it can use; resources that are missing from what it returns are in use from now on. Rejections, and what the
   * update brings as refused, are answered with a NACK; everything else of the update is accepted. What takes long is done in
   * steps, between which the thread serves others: nothing else is told until the last one.
   */
  update(update: Update<M>): readonly Rejection[] | StepwiseUpdate;
  /** Nothing has come in initial_fetch_timeout: it goes on without, and may get an update later. Called once at most. */
  fetchTimedOut(): void;
}

/** What a watcher makes of an update, in the steps that it takes. */
export function* stepsOf(taken: readonly Rejection[] | StepwiseUpdate): StepwiseUpdate {
  return isDone(taken) ? taken : yield* taken;
}

function isDone(taken: readonly Rejection[] | StepwiseUpdate): taken is readonly Rejection[] {
  return Array.isArray(taken);
}

/** Names of resources; '*': all that there are. A set with '*' asks for all, and in particular for the others in it. */
export type ResourceNames = ReadonlySet<string> | '*';

/** Whether it is told of all resources. */
export function wantsAll(names: ResourceNames): boolean {
  return names === '*' || names.has('*');
}

/** Whether it is told of this resource. */
export function wants(names: ResourceNames, name: string): boolean {
  return names === '*' || names.has('*') || names.has(name);
}

export interface Subscription {
  /** Asks for these from now on. */
  setNames(names: ResourceNames): void;
  /** Nothing is told any more. */
  close(): void;
}

export interface SubscriptionRequest<M = unknown> {
  /** path or path_config_source, api_config_source, ads or self. */
  readonly source: ConfigSource;
  readonly type: ResourceType;
  readonly names: ResourceNames;
  /** Of its stats, with the final dot: `cluster_manager.cds.`, `http.ingress.rds.local_routes.` */
  readonly statPrefix: string;
  readonly watcher: Watcher<M>;
  /** With `ads`: answers wait while it is closed. */
  readonly gate?: AnswerGate;
}

/** Everything that configuration comes from: files, and management servers over gRPC. */
export interface ConfigSources {
  /** Begins at once. The watcher is called later, never before this returns. */
  subscribe<M>(request: SubscriptionRequest<M>): Subscription;
}
