// Runs the health checks of one host, one after the other, while its cluster contains the host.

import { messageOf } from '../../../common/errors/errors.js';
import { shownName } from '../../../common/text/shown.js';
import { proxyAddressIn } from '../../../config/fields/proxy-address.js';
import { addressText } from '../../../io/addresses/address.js';
import { Timer, type Timers } from '../../../io/time/timing-wheel.js';
import { getLogger } from '../../../log/logger.js';
import { checkAddress } from '../../../upstream/health-checks/check-target.js';
import type { Checker, OnChecked } from '../../../upstream/health-checks/checker.js';
import type { HealthCheckSpec } from '../../../upstream/health-checks/health-check-spec.js';
import type { CheckResult } from '../../../upstream/health-checks/health-event.js';
import { HostHealth, hasPassed, Outcome } from '../../../upstream/health-checks/host-health.js';
import { HealthFlag } from '../../../upstream/hosts/health-flags.js';
import { keyOf, type ResolvedEndpoint } from '../../../upstream/hosts/host.js';
import { isSameAddress } from '../../../upstream/hosts/host-directory.js';

const logger = getLogger('hc');

/** The context of one host's checks. */
export interface HostChecks {
  /** Name of the cluster, for logs. */
  readonly name: string;
  readonly spec: HealthCheckSpec;
  readonly timers: Timers;
  schedule(begin: () => void): void;
  checker(endpoint: ResolvedEndpoint, onChecked: OnChecked): Checker;
  firstCheckMs(): number;
  /** Returns the delay. `isAtEdge`: the last check counts towards a threshold that is not reached. */
  nextCheckMs(hasPassed: boolean, isAtEdge: boolean): number;
  countAttempt(): void;
  checked(host: CheckedHost, result: CheckResult): void;
}

const enum State {
  /** Waiting for the time of the next check. */
  Waiting = 0,
  /** The check is due and scheduled. */
  Due = 1,
  Checking = 2,
  Stopped = 3,
}

export class CheckedHost {
  readonly key: string;
  /** Discovery has removed the host; it is removed when its checks fail. */
  isPendingRemoval = false;
  readonly #checks: HostChecks;
  readonly #timer = new Timer<CheckedHost>(this, onTimer);
  #endpoint: ResolvedEndpoint;
  #health: HostHealth;
  #checker: Checker | undefined;
  #state: State = State.Waiting;

  constructor(endpoint: ResolvedEndpoint, checks: HostChecks) {
    this.key = keyOf(endpoint);
    this.#endpoint = endpoint;
    this.#checks = checks;
    this.#health = this.#newHealth();
  }

  get endpoint(): ResolvedEndpoint {
    return this.#endpoint;
  }

  /** HealthFlag bits. */
  get flags(): number {
    return this.#health.flags | (this.isPendingRemoval ? HealthFlag.PendingDynamicRemoval : 0);
  }

  get isHealthy(): boolean {
    return this.#health.isHealthy;
  }

  /** No check has completed yet. */
  get isNew(): boolean {
    return this.#health.isFirst;
  }

  start(): void {
    const delayMs = this.#checks.firstCheckMs();
    if (delayMs === 0) this.#checkSoon();
    else this.#checks.timers.reschedule(this.#timer, delayMs);
  }

  /** Sets the endpoint from discovery. A new address is checked at once; without a matching key it counts as a new host. */
  moveTo(endpoint: ResolvedEndpoint): void {
    const before = this.#endpoint;
    this.#endpoint = endpoint;
    const isSamePlace = isSameAddress(checkAddress(before), checkAddress(endpoint));
    if (isSamePlace && before.check?.hostname === endpoint.check?.hostname && isSameWay(before, endpoint)) return;
    this.#checker?.close();
    this.#checker = undefined;
    if (!isSamePlace && endpoint.key === undefined) this.#health = this.#newHealth();
    if (this.#state === State.Due || (isSamePlace && this.#state === State.Waiting)) return;
    this.#checks.timers.cancel(this.#timer);
    this.#checkSoon();
  }

  /** Called when a response to a request has reported that the host fails its checks. */
  failedInTraffic(): void {
    this.#record(Outcome.FailedInTraffic, 'a response to a request says so');
  }

  stop(): void {
    this.#state = State.Stopped;
    this.#checks.timers.cancel(this.#timer);
    this.#checker?.close();
  }

  checkIsDue(): void {
    this.#checkSoon();
  }

  #newHealth(): HostHealth {
    const { excludesNewHosts, thresholds, trustsNewHosts } = this.#checks.spec;
    return new HostHealth(thresholds, { isPending: excludesNewHosts, isTrusted: trustsNewHosts });
  }

  #checkSoon(): void {
    this.#state = State.Due;
    this.#checks.schedule(() => this.#begin());
  }

  #begin(): void {
    if (this.#state !== State.Due) return;
    this.#state = State.Checking;
    this.#checks.countAttempt();
    try {
      this.#checker ??= this.#checks.checker(this.#endpoint, (outcome, reason, status) =>
        this.#checked(outcome, reason, status),
      );
      this.#checker.begin();
    } catch (error) {
      // Later checks may succeed.
      this.#checked(Outcome.NetworkFailure, messageOf(error));
    }
  }

  #checked(outcome: Outcome, reason: string, status = 0): void {
    if (this.#state !== State.Checking) return;
    this.#state = State.Waiting;
    let isAtEdge = false;
    try {
      isAtEdge = this.#record(outcome, reason, status);
    } finally {
      const delayMs = this.#checks.nextCheckMs(hasPassed(outcome), isAtEdge);
      if (this.#state === State.Waiting) this.#checks.timers.reschedule(this.#timer, delayMs);
    }
  }

  #record(outcome: Outcome, reason: string, status = 0): boolean {
    const { flags: before, isFirst, isHealthy } = this.#health;
    const isAtEdge = this.#health.take(outcome);
    this.#log(outcome, reason, isFirst, isHealthy);
    this.#checks.checked(this, { outcome, status, isFirst, before, after: this.#health.flags });
    return isAtEdge;
  }

  #log(outcome: Outcome, reason: string, wasNew: boolean, wasHealthy: boolean): void {
    const { name, spec } = this.#checks;
    const { isHealthy } = this.#health;
    const isGood = hasPassed(outcome);
    const what = () => `cluster '${shownName(name)}', host ${addressText(this.#endpoint.address)}`;
    if (isHealthy !== wasHealthy) logger.info(`${what()} is ${isHealthy ? 'healthy' : 'unhealthy'}: ${reason}`);
    else if (isGood ? spec.logsSuccesses : wasNew || spec.logsFailures) {
      logger.info(`${what()}: its check has ${isGood ? 'passed' : 'failed'}: ${reason}`);
    } else if (logger.isDebug) {
      logger.debug(`${what()}: its check has ${isGood ? 'passed' : 'failed'}: ${reason}`);
    }
  }
}

/** Returns whether connections to both endpoints go through the same HTTP proxy, if any, with the same transport socket. */
function isSameWay(a: ResolvedEndpoint, b: ResolvedEndpoint): boolean {
  if (a.transport !== b.transport || a.hostname !== b.hostname) return false;
  return (
    a === b ||
    (JSON.stringify(proxyAddressIn(a.metadata)) === JSON.stringify(proxyAddressIn(b.metadata)) &&
      JSON.stringify(proxyAddressIn(a.localityMetadata)) === JSON.stringify(proxyAddressIn(b.localityMetadata)))
  );
}

function onTimer(host: CheckedHost): void {
  host.checkIsDue();
}
