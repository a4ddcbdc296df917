// The filter of requests while the plugin has failed: it answers them.

import { HeadersStatus, type HttpFilter, type StreamControl } from '../../../sdk.js';
import { FAILED } from './replies.js';

export class FailedPlugin implements HttpFilter {
  readonly #stream: StreamControl;

  constructor(stream: StreamControl) {
    this.#stream = stream;
  }

  decodeHeaders(): HeadersStatus {
    this.#stream.sendLocalReply(FAILED);
    return HeadersStatus.StopIteration;
  }
}
