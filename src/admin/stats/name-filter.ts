// The `filter` parameter: a regular expression that may match anywhere in a name.

import { RegexError } from '../../common/text/regex.js';
import { namePattern } from '../../stats/read/name-pattern.js';
import { Refusal } from '../admin-handler.js';
import type { QueryParameters } from '../http/messages/query-parameters.js';

/**
 * Returns a predicate for names; undefined without a filter. Throws a Refusal, in Envoy's words, for an expression that is
 * too costly or does not compile; the latter includes the reason if `givesReason`.
 */
export function nameFilter(query: QueryParameters, givesReason: boolean): ((name: string) => boolean) | undefined {
  const pattern = query.get('filter');
  if (pattern === undefined) return undefined;
  try {
    return namePattern(pattern);
  } catch (error) {
    if (!(error instanceof RegexError)) throw error;
    const reason = givesReason || error.isTooLarge ? `: ${error.reason}` : '';
    throw new Refusal(400, `Invalid re2 regex${reason}`);
  }
}
