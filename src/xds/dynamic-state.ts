// The state of a resource from a file or a management server: the version in use, and the last refusal.

import type { ClientResourceStatus } from '../config/generated/api.js';
import { redact, type SensitiveValue, shownPart } from '../config/schema/sensitive.js';
import type { RefusedResource, Resource } from './resource.js';
import type { Rejection } from './subscription.js';

/** The last update that was refused: envoy.admin.v3.UpdateFailureState. */
export interface UpdateFailure {
  /** In proto JSON form, redacted; undefined when it could not be read. */
  readonly failedConfiguration: object | undefined;
  readonly lastUpdateAttempt: Date;
  readonly details: string;
  readonly versionInfo: string;
}

export interface DynamicState {
  /** Version in use; '' when there is none. */
  readonly versionInfo: string;
  /** When that version arrived; undefined when none has. */
  readonly lastUpdated: Date | undefined;
  /** The last refusal; undefined after an accepted update. */
  readonly errorState: UpdateFailure | undefined;
  readonly clientStatus: ClientResourceStatus;
}

/** State of a resource that has been requested. */
export const REQUESTED: DynamicState = {
  versionInfo: '',
  lastUpdated: undefined,
  errorState: undefined,
  clientStatus: 'REQUESTED',
};

/** State of a resource that the management server reports as missing. */
export const DOES_NOT_EXIST: DynamicState = { ...REQUESTED, clientStatus: 'DOES_NOT_EXIST' };

/** Returns the state after a resource has been put in use. */
export function accepted({ version }: Pick<Resource, 'version'>, now = new Date()): DynamicState {
  return { versionInfo: version, lastUpdated: now, errorState: undefined, clientStatus: 'ACKED' };
}

/** Returns the state after a resource could not be read. The version in use, from `before`, stays. */
export function refused(
  before: DynamicState,
  { version, details, message }: Omit<RefusedResource, 'name'>,
  now = new Date(),
): DynamicState {
  const failedConfiguration = typeof message === 'object' && message !== null ? message : undefined;
  const errorState = { failedConfiguration, lastUpdateAttempt: now, details, versionInfo: version };
  return { ...before, errorState, clientStatus: 'NACKED' };
}

/** Returns the state after a valid resource could not be used. */
export function rejected(
  before: DynamicState,
  { version, message, sensitive }: Resource,
  { details }: Pick<Rejection, 'details'>,
): DynamicState {
  return refused(before, { version, details, message: shown(message as object, sensitive) });
}

/**
 * Returns the redacted form of a message: always the same object for the same message, however many callers there are. A message
 * without sensitive values may be a part of one that has some.
 */
export function shown(message: object, sensitive: readonly SensitiveValue[]): object {
  if (sensitive.length === 0) return shownPart(message);
  let redacted = shownMessages.get(message)?.deref();
  if (redacted === undefined) shownMessages.set(message, new WeakRef((redacted = redact(message, sensitive))));
  return redacted;
}

const shownMessages = new WeakMap<object, WeakRef<object>>();
