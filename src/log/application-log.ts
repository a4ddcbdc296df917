// The layout of process log lines that a bootstrap asks for: application_log_config.

import { BatonError } from '../common/errors/errors.js';
import type { Bootstrap_ApplicationLogConfig } from '../config/generated/api.js';
import { FLAG } from './log-format.js';

/**
 * The layout, as --log-format would give it; undefined when the bootstrap asks for none. Throws BatonError, with its place
 * below application_log_config, when a JSON layout would not give JSON.
 */
export function applicationLogPattern(config: Bootstrap_ApplicationLogConfig | undefined): string | undefined {
  const { text_format: text, json_format: json } = config?.log_format ?? {};
  return json === undefined ? text : jsonLogPattern(json);
}

/**
 * The layout of json_format: one JSON object a line whose strings hold flags.
 * @throws BatonError when a string uses a flag whose text would break the JSON
 */
export function jsonLogPattern(format: { readonly [key: string]: unknown }): string {
  const pattern = JSON.stringify(format);
  for (const [all, , , cut, padFlag, flag = padFlag] of pattern.matchAll(FLAG)) {
    if (flag === 'v' || flag === '_') throw unavailable(`%${flag}`, 'its text is not escaped', 'use %j');
    if (flag === 'j' && cut === '!') throw unavailable(all, 'it may cut an escape in half', 'leave out the !');
  }
  return pattern;
}

function unavailable(flag: string, reason: string, remedy: string): BatonError {
  return new BatonError('CONFIG_INVALID', `usage of ${flag} is unavailable for JSON log formats: ${reason}`, {
    where: 'log_format.json_format',
    remedy,
  });
}
