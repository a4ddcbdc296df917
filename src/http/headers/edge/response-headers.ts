// The headers that the connection manager adds to every response: Server, Date and Via.

import { headerKey } from '../../../common/text/header-names.js';
import type { Clock } from '../../../io/time/clock.js';
import type { HeaderBlock } from '../header-block.js';
import { HeaderLine } from '../header-line.js';

/** HttpConnectionManager.server_header_transformation. */
export const enum ServerHeader {
  Overwrite = 0,
  AppendIfAbsent = 1,
  PassThrough = 2,
}

/** There is one for each connection manager and thread. */
export class ResponseHeaders {
  readonly #clock: Clock;
  readonly #mode: ServerHeader;
  readonly #server: HeaderLine;
  readonly #via: HeaderLine | undefined;
  #date = new HeaderLine(DATE, '');
  #dateSecond = -1;

  constructor(clock: Clock, mode: ServerHeader, serverName: string, via: string) {
    this.#clock = clock;
    this.#mode = mode;
    this.#server = new HeaderLine(SERVER, serverName);
    this.#via = via === '' ? undefined : new HeaderLine(VIA, via);
  }

  /** Adds the headers. A Date that the host has set is kept. */
  apply(headers: HeaderBlock): void {
    if (this.#mode === ServerHeader.Overwrite) {
      headers.removeId(SERVER.id);
      this.#server.addTo(headers);
    } else if (this.#mode === ServerHeader.AppendIfAbsent && headers.findId(SERVER.id) < 0) {
      this.#server.addTo(headers);
    }
    if (headers.findId(DATE.id) < 0) this.#addDate(headers);
    this.#via?.addTo(headers);
  }

  #addDate(headers: HeaderBlock): void {
    const second = Math.floor(this.#clock.realtimeMs / 1000);
    if (second !== this.#dateSecond) {
      this.#dateSecond = second;
      this.#date = new HeaderLine(DATE, new Date(second * 1000).toUTCString());
    }
    this.#date.addTo(headers);
  }
}

const DATE = headerKey('date');
const SERVER = headerKey('server');
const VIA = headerKey('via');
