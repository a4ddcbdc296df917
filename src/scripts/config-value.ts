// Validates the configuration of a module with the module's own validator.

import type { StandardIssue, StandardSchema } from '../api/index.js';
import { messageOf } from '../common/errors/errors.js';

/**
 * Returns the value that hooks get: the result of the module's validator, or `config` itself if the module has none (an empty
 * object if `config` is undefined). Throws an Error whose message describes what is invalid.
 */
export function configValue(validator: unknown, config: unknown): unknown {
  const given = config ?? {};
  if (validator === undefined) return given;
  const standard = (validator as Partial<StandardSchema>)['~standard'];
  // Functions may be Standard Schemas too.
  if (standard === undefined) {
    if (typeof validator === 'function') return validator(given);
    throw new TypeError('its `config` is neither a Standard Schema nor a function');
  }
  const result = standard.validate(given);
  if (result instanceof Promise)
    throw new TypeError('its `config` validates asynchronously, which is not possible here');
  if (result.issues === undefined) return result.value;
  throw new Error(result.issues.map(issueText).join('; '));
}

function issueText({ message, path = [] }: StandardIssue): string {
  const at = path.map((part) => String(typeof part === 'object' ? part.key : part)).join('.');
  return at === '' ? message : `${at}: ${message}`;
}

/** Returns the message of the error that configValue() would throw; undefined if the value is valid. */
export function configMistake(validator: unknown, config: unknown): string | undefined {
  try {
    configValue(validator, config);
    return undefined;
  } catch (error) {
    return messageOf(error);
  }
}
