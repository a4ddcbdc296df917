// The answer to a request whose handling has failed with an exception: a mistake in a filter, or in Baton.

import type { LocalReply } from '../filters/filter.js';

export const INTERNAL_ERROR: Readonly<LocalReply> = {
  status: 500,
  body: 'internal error',
  details: 'internal_error',
  flags: 0,
};
