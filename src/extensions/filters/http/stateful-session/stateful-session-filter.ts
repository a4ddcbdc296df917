// The stateful session of one request: reads the address of its host, and writes another one that it gets.

import {
  type Clock,
  type HeaderBlock,
  HeadersStatus,
  type HttpFilter,
  ResponseFlag,
  type StreamControl,
} from '../../../sdk.js';
import type { SessionCounts } from './session-counts.js';
import type { SessionState } from './session-state.js';

export interface SessionRules {
  /** Undefined: no request has a session. */
  readonly state: SessionState | undefined;
  /** A request whose host cannot be used fails. */
  readonly isStrict: boolean;
  /** Status of that answer. */
  readonly strictStatus: number;
  /** '': its requests are not counted. */
  readonly statPrefix: string;
  /** Set before the first request, unless the prefix is ''. */
  counts: SessionCounts | undefined;
}

export class StatefulSessionFilter implements HttpFilter {
  readonly #stream: StreamControl;
  readonly #rules: SessionRules;
  readonly #clock: Pick<Clock, 'realtimeMs'>;
  /** Undefined: nothing is counted. */
  readonly #counts: SessionCounts | undefined;
  /** Undefined: the request has no session. */
  #state: SessionState | undefined;
  #address = '';

  constructor(stream: StreamControl, rules: SessionRules, clock: Pick<Clock, 'realtimeMs'>) {
    this.#stream = stream;
    this.#rules = rules;
    this.#clock = clock;
    this.#counts = rules.counts;
  }

  decodeHeaders(headers: HeaderBlock): HeadersStatus {
    const { isStrict, state, strictStatus } = this.#rules;
    if (state?.appliesTo(headers) !== true) return HeadersStatus.Continue;
    this.#state = state;
    this.#address = state.read(headers, this.#clock.realtimeMs);
    if (this.#address === '') return HeadersStatus.Continue;
    const { info } = this.#stream;
    info.overrideHost = this.#address;
    info.isOverrideStrict = isStrict;
    info.strictStatus = strictStatus;
    return HeadersStatus.Continue;
  }

  encodeHeaders(headers: HeaderBlock): HeadersStatus {
    const { host, responseFlags } = this.#stream.info;
    if (host === undefined) {
      const isFailed = this.#rules.isStrict && (responseFlags & ResponseFlag.NoHealthyUpstream) !== 0;
      if (this.#state !== undefined && isFailed) this.#counts?.failed_closed.increment();
    } else if (this.#state === undefined) this.#counts?.no_session.increment();
    else if (host.address === this.#address) this.#counts?.routed.increment();
    else {
      this.#state.write(headers, host.address, this.#clock.realtimeMs);
      if (!this.#rules.isStrict) this.#counts?.failed_open.increment();
    }
    return HeadersStatus.Continue;
  }
}
