// The terminal filter of an empty filter chain. No filter can answer, so that every request gets 500.

import type { LocalReply, TerminalFilterFactory } from './filter.js';

export const NO_FILTERS: TerminalFilterFactory = {
  create: (stream) => ({
    decodeHeaders: () => stream.sendLocalReply(NO_ANSWER),
    decodeData() {},
    decodeTrailers() {},
    onResponseBlocked() {},
    onResponseDrained() {},
    onDestroy() {},
  }),
};

const NO_ANSWER: LocalReply = {
  status: 500,
  body: 'the listener has no HTTP filters',
  details: 'no_http_filters',
  flags: 0,
};
