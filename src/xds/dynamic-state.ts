// What is known of a resource that a file or a management server delivers: which version is in use, what was refused last.

import type { ClientResourceStatus } from '../config/generated/api.js';
import { redact, type SensitiveValue, shownPart } from '../config/schema/sensitive.js';
import type { RefusedResource, Resource } from './resource.js';
import type { Rejection } from './subscription.js';

/** The last update that could not be used: envoy.admin.v3.UpdateFailureState. */
export interface UpdateFailure {
  /** In proto JSON form, without what is secret; undefined when it could not be read. */
  readonly failedConfiguration: object | undefined;
  readonly lastUpdateAttempt: Date;
  readonly details: string;
  readonly versionInfo: string;
}

export interface DynamicState {
  /** Of what is in use; '' when nothing is. */
  readonly versionInfo: string;
  /** When that came; undefined when nothing has. */
  readonly lastUpdated: Date | undefined;
  /** Until an update is used again. */
  readonly errorState: UpdateFailure | undefined;
  readonly clientStatus: ClientResourceStatus;
}

/** It has been asked for. */
export const REQUESTED: DynamicState = {
  versionInfo: '',
  lastUpdated: undefined,
  errorState: undefined,
  clientStatus: 'REQUESTED',
};

/** The management server has said that there is none. */
export const DOES_NOT_EXIST: DynamicState = { ...REQUESTED, clientStatus: 'DOES_NOT_EXIST' };

/** This one is in use from now on. */
export function accepted({ version }: Pick<Resource, 'version'>, now = new Date()): DynamicState {
  return { versionInfo: version, lastUpdated: now, errorState: undefined, clientStatus: 'ACKED' };
}

/** It cannot be read: what was in use before stays, which `before` tells. */
export function refused(
  before: DynamicState,
  { version, details, message }: Omit<RefusedResource, 'name'>,
  now = new Date(),
): DynamicState {
  const failedConfiguration = typeof message === 'object' && message !== null ? message : undefined;
  const errorState = { failedConfiguration, lastUpdateAttempt: now, details, versionInfo: version };
  return { ...before, errorState, clientStatus: 'NACKED' };
}

/** It was right by itself, and cannot be used. */
export function rejected(
  before: DynamicState,
  { version, message, sensitive }: Resource,
  { details }: Pick<Rejection, 'details'>,
): DynamicState {
  return refused(before, { version, details, message: shown(message as object, sensitive) });
}

/**
 * A message as it may be shown: the same object as before for as long as that is in use, however many ask. Without values of its own it may
 * be a part of a message that has some.
 */
export function shown(message: object, sensitive: readonly SensitiveValue[]): object {
  if (sensitive.length === 0) return shownPart(message);
  let redacted = shownMessages.get(message)?.deref();
  if (redacted === undefined) shownMessages.set(message, new WeakRef((redacted = redact(message, sensitive))));
  return redacted;
}

const shownMessages = new WeakMap<object, WeakRef<object>>();
