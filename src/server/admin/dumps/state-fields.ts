// The fields that show the state of a discovered resource in the dumps of /config_dump.

import type { JsonObject } from '../../../admin/json.js';
import type { DynamicState, UpdateFailure } from '../../../xds/dynamic-state.js';
import { any } from './dump.js';

/** Returns `version_info` and `last_updated`, which stand beside the resource. */
export function versionFields({ versionInfo, lastUpdated }: DynamicState): JsonObject {
  return {
    version_info: versionInfo === '' ? undefined : versionInfo,
    last_updated: lastUpdated?.toISOString(),
  };
}

/** Returns `error_state` and `client_status`. `message`: full name of the resource's message, as in RESOURCE_MESSAGES. */
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
