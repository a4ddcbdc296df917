// The local reply for a request that the thread has no memory left to hold.

import { ResponseFlag } from '../../access-log/stream/response-flags.js';
import type { LocalReply } from './filter.js';

export const NO_ROOM: Readonly<LocalReply> = {
  status: 503,
  body: 'out of memory for requests',
  details: 'overload',
  flags: ResponseFlag.OverloadManager,
};
