// The log line layout that application_log_config of the bootstrap requests.

import { BatonError } from '../common/errors/errors.js';
import type { Bootstrap_ApplicationLogConfig } from '../config/generated/api.js';
import type { JsonLogFormat } from './json-log-format.js';
import { FLAG } from './log-format.js';

/**
 * Returns the layout: a text in the syntax of --log-format, or the members of JSON lines; undefined if the bootstrap sets none.
 * @throws BatonError, with a path below application_log_config, if a JSON layout uses a flag that Envoy refuses there
 */
export function applicationLogFormat(
  config: Bootstrap_ApplicationLogConfig | undefined,
): string | JsonLogFormat | undefined {
  const { text_format: text, json_format: json } = config?.log_format ?? {};
  if (json !== undefined) checkJsonLogFormat(json);
  return json ?? text;
}

/** @throws BatonError if a string uses a flag that JSON layouts do not allow: %v or %_ */
export function checkJsonLogFormat(format: JsonLogFormat): void {
  for (const [, , , , padFlag, flag = padFlag] of JSON.stringify(format).matchAll(FLAG)) {
    if (flag !== 'v' && flag !== '_') continue;
    throw new BatonError('CONFIG_INVALID', `usage of %${flag} is unavailable for JSON log formats`, {
      where: 'log_format.json_format',
      remedy: 'use %j',
    });
  }
}
