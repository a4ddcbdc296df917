// The state of the overload manager on one thread, as the code that serves connections reads it. Without an overload manager no
// object of this class exists.

import type { Random } from '../../common/random.js';
import { Action, ShedPoint } from '../../config/fields/overload-names.js';
import { LoadShedPointStats, overloadPrefix } from '../../stats/layouts/overload.js';
import type { Scope } from '../../stats/thread-stats.js';
import type { OverloadSpec, OverloadState, TimerType } from './overload-state.js';
import { scaled } from './scaled-timeouts.js';

/** What a new state changes for connections and listeners that exist. */
export interface OverloadChange {
  /** Listeners stop or resume accepting. */
  readonly togglesAccepting: boolean;
  /** Timeouts have become shorter, and may be over. */
  readonly shortensTimeouts: boolean;
}

export class ThreadOverload {
  readonly acceptConnection: LoadShedPoint | undefined;
  readonly createCodec: LoadShedPoint | undefined;
  readonly decodeHeaders: LoadShedPoint | undefined;
  readonly filterCheck: LoadShedPoint | undefined;
  readonly http1Dispatch: LoadShedPoint | undefined;
  readonly goAway: LoadShedPoint | undefined;
  readonly goAwayAndClose: LoadShedPoint | undefined;
  readonly newUpstreamConnection: LoadShedPoint | undefined;
  readonly tcpProxyConnect: LoadShedPoint | undefined;
  readonly tcpProxyData: LoadShedPoint | undefined;
  /** Listeners accept no connections; those in their backlogs wait. */
  isAcceptingStopped = false;
  readonly #random: Random;
  readonly #timers: OverloadSpec['timers'];
  readonly #points: LoadShedPoint[] = [];
  #stopsRequests = 0;
  #disablesKeepAlive = 0;
  #rejectsConnections = 0;
  #reducesTimeouts = 0;

  /** `scope` returns the scope of a load shed point, with LoadShedPointStats. */
  constructor({ points, timers }: OverloadSpec, random: Random, scope: (prefix: string) => Scope) {
    this.#random = random;
    this.#timers = timers;
    const point = (name: string) => {
      if (!points.includes(name)) return undefined;
      const found = new LoadShedPoint(name, random, scope(overloadPrefix(name)));
      this.#points.push(found);
      return found;
    };
    this.acceptConnection = point(ShedPoint.AcceptConnection);
    this.createCodec = point(ShedPoint.CreateCodec);
    this.decodeHeaders = point(ShedPoint.DecodeHeaders);
    this.filterCheck = point(ShedPoint.FilterCheck);
    this.http1Dispatch = point(ShedPoint.Http1Dispatch);
    this.goAway = point(ShedPoint.GoAway);
    this.goAwayAndClose = point(ShedPoint.GoAwayAndClose);
    this.newUpstreamConnection = point(ShedPoint.NewUpstreamConnection);
    this.tcpProxyConnect = point(ShedPoint.TcpProxyConnect);
    this.tcpProxyData = point(ShedPoint.TcpProxyData);
  }

  /** Sets a published state. */
  set(state: OverloadState): OverloadChange {
    const wasAcceptingStopped = this.isAcceptingStopped;
    const before = this.#reducesTimeouts;
    this.#stopsRequests = state[Action.StopAcceptingRequests] ?? 0;
    this.#disablesKeepAlive = state[Action.DisableKeepAlive] ?? 0;
    this.#rejectsConnections = state[Action.RejectConnections] ?? 0;
    this.isAcceptingStopped = state[Action.StopAcceptingConnections] === 1;
    for (const point of this.#points) point.value = state[point.name] ?? 0;
    this.#reducesTimeouts = state[Action.ReduceTimeouts] ?? 0;
    return {
      togglesAccepting: this.isAcceptingStopped !== wasAcceptingStopped,
      shortensTimeouts: this.#reducesTimeouts > before,
    };
  }

  /** Returns whether a new connection is to be closed. */
  rejectsConnection(): boolean {
    return this.acceptConnection?.sheds() || this.#hits(this.#rejectsConnections);
  }

  /** Returns whether a new request is to be answered with an error. */
  stopsRequest(): boolean {
    return this.decodeHeaders?.sheds() || this.#hits(this.#stopsRequests);
  }

  /** Returns whether a response is to be the last on its connection. */
  disablesKeepAlive(): boolean {
    return this.#hits(this.#disablesKeepAlive);
  }

  /** Returns a configured timeout as it is now. */
  timeout(type: TimerType, ms: number): number {
    return scaled(ms, this.#timers[type], this.#reducesTimeouts);
  }

  #hits(value: number): boolean {
    return value > 0 && (value >= 1 || this.#random.fraction() < value);
  }
}

/** A place that refuses work while the server is overloaded. */
export class LoadShedPoint {
  readonly name: string;
  /** From 0 (never) to 1 (always). */
  value = 0;
  readonly #random: Random;
  readonly #stats: Scope;

  constructor(name: string, random: Random, stats: Scope) {
    this.name = name;
    this.#random = random;
    this.#stats = stats;
  }

  /** Returns whether to refuse, and counts that. */
  sheds(): boolean {
    const { value } = this;
    if (value === 0 || (value < 1 && this.#random.fraction() >= value)) return false;
    this.#stats.increment(LoadShedPointStats.at.shed_load_count);
    return true;
  }
}
