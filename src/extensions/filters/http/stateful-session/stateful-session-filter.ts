// The stateful session of one request: reads the address of its host, and writes another one that it gets.

import {
  type Clock,
  defineLayout,
  type HeaderBlock,
  HeadersStatus,
  type HttpFilter,
  ResponseFlag,
  type Scope,
  type StreamControl,
} from '../../../sdk.js';
import type { SessionState } from './session-state.js';

/** Scope `http.<prefix>.stateful_session.<stat_prefix>.`; only with a stat_prefix. */
export const SessionStats = defineLayout({
  routed: 'counter',
  failed_open: 'counter',
  failed_closed: 'counter',
  no_session: 'counter',
});

export interface SessionRules {
  /** Undefined: no request has a session. */
  readonly state: SessionState | undefined;
  /** A request whose host cannot be used fails. */
  readonly isStrict: boolean;
  /** Status of that answer. */
  readonly strictStatus: number;
}

export class StatefulSessionFilter implements HttpFilter {
  readonly #stream: StreamControl;
  readonly #rules: SessionRules;
  readonly #clock: Pick<Clock, 'realtimeMs'>;
  /** Undefined: nothing is counted. */
  readonly #stats: Scope | undefined;
  /** Undefined: the request has no session. */
  #state: SessionState | undefined;
  #address = '';

  constructor(stream: StreamControl, rules: SessionRules, clock: Pick<Clock, 'realtimeMs'>, stats: Scope | undefined) {
    this.#stream = stream;
    this.#rules = rules;
    this.#clock = clock;
    this.#stats = stats;
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
    const { at } = SessionStats;
    if (host === undefined) {
      const isFailed = this.#rules.isStrict && (responseFlags & ResponseFlag.NoHealthyUpstream) !== 0;
      if (this.#state !== undefined && isFailed) this.#stats?.increment(at.failed_closed);
    } else if (this.#state === undefined) this.#stats?.increment(at.no_session);
    else if (host.address === this.#address) this.#stats?.increment(at.routed);
    else {
      this.#state.write(headers, host.address, this.#clock.realtimeMs);
      if (!this.#rules.isStrict) this.#stats?.increment(at.failed_open);
    }
    return HeadersStatus.Continue;
  }
}
