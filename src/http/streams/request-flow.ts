// Flow control of a request body: it is read only while no part of its path pauses it.

import { HttpStats } from '../../stats/layouts/http.js';
import type { Scope } from '../../stats/thread-stats.js';
import type { ResponseEncoder } from '../codec/streams.js';

/** The bits of the terminal filter. */
const TERMINAL = (1 << 8) - 1;
/** In addition to the bits of the terminal filter and of the filters. */
const PAUSED_BY_RELEASE = 1 << 9;

export class RequestFlow {
  readonly #http: Scope;
  /** Set until the request is complete. */
  #encoder: ResponseEncoder | undefined;
  /** Bits of the parts that pause the body. */
  #paused = 0;
  /** A pause is counted whose end is not. */
  #isCounted = false;
  /** Nesting depth of filters that are passing on held data. */
  #releases = 0;

  /** `http`: http.<stat_prefix>. */
  constructor(http: Scope) {
    this.#http = http;
  }

  begin(encoder: ResponseEncoder | undefined): void {
    this.#encoder = encoder;
    this.#paused = 0;
    this.#isCounted = false;
    this.#releases = 0;
  }

  /** Called when the request is complete or ended: the connection is then read despite pauses, to detect a disconnect. */
  end(): void {
    this.#encoder = undefined;
  }

  get isPaused(): boolean {
    return this.#paused !== 0;
  }

  /** The terminal filter pauses the body. */
  get isPausedByHost(): boolean {
    return (this.#paused & TERMINAL) !== 0;
  }

  /** Pauses the body on behalf of `part`, a bit. `isCounted`: the pause is one of flow control. */
  pause(part: number, isCounted = true): void {
    if (this.#encoder !== undefined) {
      if (this.#paused === 0) this.#encoder.pauseReading();
      if (isCounted && !this.#isCounted) {
        this.#isCounted = true;
        this.#http.increment(HttpStats.at.downstream_flow_control_paused_reading_total);
      }
    }
    this.#paused |= this.#releases > 0 ? part | PAUSED_BY_RELEASE : part;
  }

  resume(part: number): void {
    if ((this.#paused & part) === 0) return;
    this.#paused &= ~part;
    if (this.#paused !== 0 || this.#encoder === undefined) return;
    if (this.#isCounted) {
      this.#isCounted = false;
      this.#http.increment(HttpStats.at.downstream_flow_control_resumed_reading_total);
    }
    this.#encoder.resumeReading();
  }

  /** Ends all pauses: what has been received of the body is delivered before this returns, unless the codec is running. */
  release(): void {
    this.resume(this.#paused);
  }

  /** Called before a filter passes on held data: new data must stay behind it, even if the body is resumed meanwhile. */
  beginRelease(): void {
    if (this.#paused !== 0) this.#paused |= PAUSED_BY_RELEASE;
    this.#releases++;
  }

  endRelease(): void {
    if (--this.#releases === 0) this.resume(PAUSED_BY_RELEASE);
  }
}
