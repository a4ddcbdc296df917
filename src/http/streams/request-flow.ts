// Whether the body of a request flows: all that it passes on its way must agree before it does.

import { HttpStats } from '../../stats/layouts/http.js';
import type { Scope } from '../../stats/thread-stats.js';
import type { ResponseEncoder } from '../codec/streams.js';

/** Beside the bits of the terminal filter and of the filters. */
const PAUSED_BY_RELEASE = 1 << 9;

export class RequestFlow {
  readonly #http: Scope;
  /** Of the request of which more is to come. */
  #encoder: ResponseEncoder | undefined;
  /** Why it is not read now: bits of those that pause it. */
  #paused = 0;
  /** Filters pass on what they have held; more than one of them, one inside the other. */
  #releases = 0;

  /** `http`: http.<stat_prefix>. */
  constructor(http: Scope) {
    this.#http = http;
  }

  begin(encoder: ResponseEncoder | undefined): void {
    this.#encoder = encoder;
    this.#paused = 0;
    this.#releases = 0;
  }

  /** The request is complete, or over: the connection is read on whoever pauses, for it may tell that the client has left. */
  end(): void {
    this.#encoder = undefined;
  }

  get isPaused(): boolean {
    return this.#paused !== 0;
  }

  /** `who` (a bit of its own) cannot take more of it. */
  pause(who: number): void {
    if (this.#paused === 0 && this.#encoder !== undefined) {
      this.#encoder.pauseReading();
      this.#http.increment(HttpStats.at.downstream_flow_control_paused_reading_total);
    }
    this.#paused |= this.#releases > 0 ? who | PAUSED_BY_RELEASE : who;
  }

  resume(who: number): void {
    if ((this.#paused & who) === 0) return;
    this.#paused &= ~who;
    if (this.#paused !== 0 || this.#encoder === undefined) return;
    this.#http.increment(HttpStats.at.downstream_flow_control_resumed_reading_total);
    this.#encoder.resumeReading();
  }

  /** Whoever lets the request flow meanwhile, what comes then stays behind what a filter has held. */
  beginRelease(): void {
    if (this.#paused !== 0) this.#paused |= PAUSED_BY_RELEASE;
    this.#releases++;
  }

  endRelease(): void {
    if (--this.#releases === 0) this.resume(PAUSED_BY_RELEASE);
  }
}
