// Envoy's limits for the program size of regular expressions in messages (envoy.type.matcher.v3.RegexMatcher).

import { regexSize } from '../common/text/regex-size.js';
import { runtimeEntries } from './fields/runtime-entries.js';
import type { Bootstrap, RegexMatcher } from './generated/api.js';

export interface RegexLimits {
  /** Expressions with a larger program are refused, unless they set their own limit. */
  readonly error: number;
  /** Expressions with a larger program cause a warning. */
  readonly warning: number;
}

const ERROR_KEY = 're2.max_program_size.error_level';
const WARNING_KEY = 're2.max_program_size.warn_level';

export const DEFAULT_REGEX_LIMITS: RegexLimits = { error: 100, warning: Infinity };

/** Returns the limits from the static layers of a bootstrap. Later layers override earlier ones. */
export function regexLimits(bootstrap: Bootstrap): RegexLimits {
  let { error, warning } = DEFAULT_REGEX_LIMITS;
  for (const layer of bootstrap.layered_runtime?.layers ?? []) {
    for (const { key, value } of runtimeEntries(layer?.static_layer ?? {})) {
      if (!Number.isInteger(Number(value)) || Number(value) < 0) continue;
      if (key === ERROR_KEY) error = Number(value);
      else if (key === WARNING_KEY) warning = Number(value);
    }
  }
  return { error, warning };
}

/** Returns the problem with the size of a valid expression; undefined if there is none. */
export function sizeProblem(
  { google_re2, regex = '' }: RegexMatcher,
  limits: RegexLimits,
): { readonly isError: boolean; readonly message: string } | undefined {
  const { program } = regexSize(regex);
  const own = google_re2?.max_program_size;
  const what = `the RE2 program of this expression has a size of ${program} or more`;
  if (own !== undefined) {
    return program > own ? { isError: true, message: `${what}: max_program_size allows ${own}` } : undefined;
  }
  if (program > limits.error) {
    const remedy = `the runtime key '${ERROR_KEY}' in a static layer allows ${limits.error}`;
    return { isError: true, message: `${what}: ${remedy}` };
  }
  if (program <= limits.warning) return undefined;
  return { isError: false, message: `${what}, more than '${WARNING_KEY}' (${limits.warning})` };
}
