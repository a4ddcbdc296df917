// The `filter` parameter: a regular expression that may match anywhere in a name.

import { BatonError } from '../../common/errors/errors.js';
import { compileRegex } from '../../common/text/regex.js';
import { Refusal } from '../admin-handler.js';
import type { QueryParameters } from '../http/messages/query-parameters.js';

/** Whether a name is wanted; undefined without a filter. Throws a Refusal for an expression that is none. */
export function nameFilter(query: QueryParameters): ((name: string) => boolean) | undefined {
  const pattern = query.get('filter');
  if (pattern === undefined) return undefined;
  try {
    const regex = compileRegex(pattern);
    return (name) => regex.test(name);
  } catch (error) {
    if (error instanceof BatonError && error.code === 'REGEX_INVALID') throw new Refusal(400, 'Invalid re2 regex');
    throw error;
  }
}
