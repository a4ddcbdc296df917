// envoy.regex_engines.google_re2: the engine of all expressions, named or not (common/text/regex.ts).

import type { RegexEngineExtension } from '../../sdk.js';

export const googleRe2: RegexEngineExtension = {
  category: 'envoy.regex_engines',
  name: 'envoy.regex_engines.google_re2',
  typeUrls: ['type.googleapis.com/envoy.extensions.regex_engines.v3.GoogleRE2'],
};
