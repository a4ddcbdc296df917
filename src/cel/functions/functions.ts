// The functions that an expression may call.

import type { CelExpressionConfig } from '../../config/generated/api.js';
import { CONVERSIONS, TO_STRING } from './conversions.js';
import type { CelFunction, FunctionTable } from './function-table.js';
import { CONCATENATION, OPERATORS } from './operators.js';
import { STRING_FUNCTIONS } from './string-functions.js';
import { TEXTS } from './texts.js';
import { TIMES } from './times.js';

const ALWAYS: readonly (readonly [string, CelFunction])[] = [...OPERATORS, ...TEXTS, ...CONVERSIONS, ...TIMES];

/** Returns the functions with those that the configuration enables. */
export function functionsOf(config: CelExpressionConfig = {}): FunctionTable {
  const functions = new Map(ALWAYS);
  if (config.enable_string_conversion === true) functions.set('string', TO_STRING);
  if (config.enable_string_concat === true) functions.set('_+_', CONCATENATION);
  if (config.enable_string_functions === true) for (const [name, each] of STRING_FUNCTIONS) functions.set(name, each);
  return functions;
}

/** Returns how to enable a function that is missing; undefined: there is no such setting. */
export function settingFor(name: string): string | undefined {
  if (name === 'string') return 'enable_string_conversion';
  return STRING_FUNCTIONS.some(([each]) => each === name) ? 'enable_string_functions' : undefined;
}
