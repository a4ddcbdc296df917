// The local reply to a request whose handling threw an exception: a bug in a filter, or in Baton.

import type { LocalReply } from '../filters/filter.js';

export const INTERNAL_ERROR: Readonly<LocalReply> = {
  status: 500,
  body: 'internal error',
  details: 'internal_error',
  flags: 0,
};
