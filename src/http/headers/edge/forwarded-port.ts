// append_x_forwarded_port: x-forwarded-port has the port that the client connected to.

import { headerKey } from '../../../common/text/header-names.js';
import type { HeaderBlock } from '../header-block.js';
import { HeaderLine } from '../header-line.js';

export class ForwardedPort {
  /** No proxy in front is trusted to have set the field. */
  readonly #replaces: boolean;
  /** The line of the last request, because a listener has one port. */
  #port = '';
  #line: HeaderLine | undefined;

  constructor(replaces: boolean) {
    this.#replaces = replaces;
  }

  /** `port`: '' for a Unix socket, which has none. */
  addTo(headers: HeaderBlock, port: string): void {
    if (port === '') return;
    if (headers.mayHave(FORWARDED_PORT.id) && headers.findValue(FORWARDED_PORT) >= 0) {
      if (!this.#replaces) return;
      headers.remove(FORWARDED_PORT);
    }
    if (port !== this.#port || this.#line === undefined) {
      this.#port = port;
      this.#line = new HeaderLine(FORWARDED_PORT, port);
    }
    this.#line.addTo(headers);
  }
}

const FORWARDED_PORT = headerKey('x-forwarded-port');
