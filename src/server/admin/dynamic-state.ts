// What is known of a resource that a file or a management server delivers, and how the dumps of /config_dump show it.

import type { JsonObject } from '../../admin/json.js';
import type { ClientResourceStatus } from '../../config/generated/api.js';
import { redact, type SensitiveValue } from '../../config/schema/sensitive.js';
import type { RefusedResource, Resource } from '../../xds/resource.js';
import type { Rejection } from '../../xds/subscription.js';
import { any } from './dump.js';

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
  now?: Date,
): DynamicState {
  return refused(before, { version, details, message: shown(message as object, sensitive) }, now);
}

/** A message as it may be shown. */
export function shown(message: object, sensitive: readonly SensitiveValue[]): object {
  return redact(message, sensitive);
}

/** `version_info` and `last_updated`, as they stand beside the resource. */
export function versionFields({ versionInfo, lastUpdated }: DynamicState): JsonObject {
  return {
    version_info: versionInfo === '' ? undefined : versionInfo,
    last_updated: lastUpdated?.toISOString(),
  };
}

/** `error_state` and `client_status`. `message`: full name of the resource's message, as in RESOURCE_MESSAGES. */
export function statusFields(message: string, { errorState, clientStatus }: DynamicState): JsonObject {
  return {
    error_state: errorState && failureFields(message, errorState),
    client_status: clientStatus === 'UNKNOWN' ? undefined : clientStatus,
  };
}

function failureFields(message: string, failure: UpdateFailure): JsonObject {
  const { failedConfiguration, lastUpdateAttempt, details, versionInfo } = failure;
  return {
    failed_configuration: failedConfiguration && any(message, failedConfiguration),
    last_update_attempt: lastUpdateAttempt.toISOString(),
    details,
    version_info: versionInfo === '' ? undefined : versionInfo,
  };
}
