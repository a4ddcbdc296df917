// The settings for reading resources, from the command line and the bootstrap.

import { reachOf } from '../../config/checks/services/config-sources.js';
import { featureKeys } from '../../config/feature-use.js';
import { speaksHttp2 } from '../../config/fields/http-options.js';
import type { Bootstrap } from '../../config/generated/api.js';
import { regexLimits } from '../../config/regex-limits.js';
import type { ReadingSettings } from './task.js';

/** Command-line options for dynamic configuration. */
export interface DynamicOptions {
  /** --reject-unknown-dynamic-fields */
  readonly rejectsUnknown: boolean;
  /** --ignore-unknown-dynamic-fields */
  readonly ignoresUnknown: boolean;
  /** --skip-deprecated-logs */
  readonly skipsDeprecatedLogs: boolean;
  /** `<category>/<name>` of extensions that may not be used. */
  readonly disabledExtensions: readonly string[];
}

export function readingSettings(bootstrap: Bootstrap, options: DynamicOptions): ReadingSettings {
  const { rejectsUnknown, ignoresUnknown, skipsDeprecatedLogs, disabledExtensions } = options;
  const http2 = (bootstrap.static_resources?.clusters ?? []).filter(speaksHttp2);
  const ignores = ignoresUnknown && !rejectsUnknown;
  return {
    unknownFields: rejectsUnknown ? 'refuse' : ignores ? 'ignore' : 'warn',
    features: ignores ? 'none' : skipsDeprecatedLogs ? 'unfinished' : 'all',
    featureKeys: featureKeys(bootstrap),
    regexLimits: regexLimits(bootstrap),
    disabledExtensions,
    reach: reachOf(bootstrap, new Set(http2.map((cluster) => cluster.name ?? ''))),
  };
}
