// In place of a module that cannot be used: nothing passes.

import { HeadersStatus, type HttpFilter, type StreamControl } from '../../../sdk.js';

export class UnusableFilter implements HttpFilter {
  readonly #stream: StreamControl;

  constructor(stream: StreamControl) {
    this.#stream = stream;
  }

  decodeHeaders(): HeadersStatus {
    this.#stream.sendLocalReply({ status: 500, body: 'Internal Server Error', details: 'script_unusable', flags: 0 });
    return HeadersStatus.StopIteration;
  }
}
