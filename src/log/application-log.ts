// The layout of process log lines that a bootstrap asks for: application_log_config.

import { BatonError } from '../common/errors/errors.js';
import type { Bootstrap_ApplicationLogConfig } from '../config/generated/api.js';
import type { JsonLogFormat } from './json-log-format.js';
import { FLAG } from './log-format.js';

/**
 * The layout: a text as --log-format has it, or the members of JSON lines; undefined when the bootstrap asks for none.
 * @throws BatonError, with its place below application_log_config, when a JSON layout uses a flag that Envoy refuses there
 */
export function applicationLogFormat(
  config: Bootstrap_ApplicationLogConfig | undefined,
): string | JsonLogFormat | undefined {
  const { text_format: text, json_format: json } = config?.log_format ?? {};
  if (json !== undefined) checkJsonLogFormat(json);
  return json ?? text;
}

/** @throws BatonError when a string uses a flag that is not for JSON: %v or %_ */
export function checkJsonLogFormat(format: JsonLogFormat): void {
  for (const [, , , , padFlag, flag = padFlag] of JSON.stringify(format).matchAll(FLAG)) {
    if (flag !== 'v' && flag !== '_') continue;
    throw new BatonError('CONFIG_INVALID', `usage of %${flag} is unavailable for JSON log formats`, {
      where: 'log_format.json_format',
      remedy: 'use %j',
    });
  }
}
