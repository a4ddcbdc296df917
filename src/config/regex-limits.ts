// How large the program of an expression may be that a message holds (envoy.type.matcher.v3.RegexMatcher), as Envoy limits it.

import { regexSize } from '../common/text/regex-size.js';
import { runtimeEntries } from './fields/runtime-entries.js';
import type { Bootstrap, RegexMatcher } from './generated/api.js';

export interface RegexLimits {
  /** An expression whose program is larger is refused, unless it names a limit of its own. */
  readonly error: number;
  /** One whose program is larger is warned of. */
  readonly warning: number;
}

const ERROR_KEY = 're2.max_program_size.error_level';
const WARNING_KEY = 're2.max_program_size.warn_level';

export const DEFAULT_REGEX_LIMITS: RegexLimits = { error: 100, warning: Infinity };

/** What the static layers of a bootstrap say of the limits; a later layer wins. */
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

/** What is to be said of the size of an expression that compiles; undefined: nothing. */
export function sizeComplaint(
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
