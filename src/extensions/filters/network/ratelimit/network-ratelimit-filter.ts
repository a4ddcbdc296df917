// The network filter ratelimit of one connection: holds it until the service has answered.

import { FilterClose, type FilteredClient, FilterStatus, type NetworkFilter, type RunningCall } from '../../../sdk.js';
import type { LimitAnswer } from '../../common/rate-limit/limit-answer.js';
import { ConnectionLimitStats, type ConnectionLimits } from './connection-limits.js';

const METADATA = 'envoy.filters.network.ratelimit';
const { at } = ConnectionLimitStats;

export class NetworkRateLimitFilter implements NetworkFilter {
  readonly #client: FilteredClient;
  readonly #limits: ConnectionLimits;
  #call: RunningCall | undefined;
  #isAsking = false;
  /** The answer arrives while the question is sent. */
  #isStarting = false;

  constructor(client: FilteredClient, limits: ConnectionLimits) {
    this.#client = client;
    this.#limits = limits;
  }

  onNewConnection(): FilterStatus {
    const { service, stats } = this.#limits;
    stats.increment(at.total);
    stats.increment(at.active);
    this.#isAsking = this.#isStarting = true;
    this.#call = service.ask(this.#limits.questionFor(this.#client), (answer) => this.#answered(answer));
    this.#isStarting = false;
    return this.#isAsking || this.#client.isClosed ? FilterStatus.Stop : FilterStatus.Continue;
  }

  onData(): FilterStatus {
    return this.#isAsking ? FilterStatus.Stop : FilterStatus.Continue;
  }

  onDestroy(): void {
    this.#call?.cancel();
    this.#end();
  }

  #end(): void {
    this.#call = undefined;
    if (this.#isAsking) this.#limits.stats.decrement(at.active);
    this.#isAsking = false;
  }

  #answered(answer: LimitAnswer | undefined): void {
    const { deniesOnError, stats } = this.#limits;
    this.#end();
    stats.increment(answer === undefined ? at.error : answer.isOver ? at.over_limit : at.ok);
    if (answer?.metadata !== undefined) this.#client.addMetadata(METADATA, answer.metadata);
    if (answer?.isOver === true && this.#limits.enforces()) return this.#close('ratelimit_close_over_limit');
    if (answer === undefined && deniesOnError) return this.#close('ratelimit_error_failure_mode_connection_close');
    if (answer === undefined) stats.increment(at.failure_mode_allowed);
    if (!this.#isStarting) this.#client.continueReading();
  }

  #close(reason: string): void {
    this.#limits.stats.increment(at.cx_closed);
    this.#client.setLocalCloseReason(reason);
    this.#client.close(FilterClose.NoFlush, '');
  }
}
