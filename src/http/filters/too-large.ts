// The local replies for messages that are larger than a filter may hold.

import type { LocalReply } from './filter.js';

export const REQUEST_TOO_LARGE: Readonly<LocalReply> = {
  status: 413,
  body: 'Payload Too Large',
  details: 'request_payload_too_large',
  flags: 0,
};

export const RESPONSE_TOO_LARGE: Readonly<LocalReply> = {
  status: 500,
  body: 'Internal Server Error',
  details: 'response_payload_too_large',
  flags: 0,
};
